"""The pulse of a worker: counts that its event loops raise while they turn, in memory that the parent reads.

    worker   each loop raises its own count, a few times within the longest silence
    parent   looks at the counts now and then; a worker one of whose loops is silent for too long is killed

A run of a model in a thread stops no loop, however long it takes. Counts in shared memory, and no messages: a parent
that is stopped would fill the pipe, and hold up the loops that write to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from ..metrics import Cells

BEATS = "worker_beats"  # a record of shared cells, for each loop
BEATS_OF_SILENCE = 5
LONGEST_BEAT_SECONDS = 1.0
LONGEST_LOOK_SECONDS = 1.0


def beat_seconds(silence_seconds: float) -> float:
    """The time between two beats, so that several fit into the longest silence."""
    return min(LONGEST_BEAT_SECONDS, silence_seconds / BEATS_OF_SILENCE)


def make_beat_function(cells: Cells, loop_name: str, seconds: float) -> Callable[[], None]:
    """A function that has the running event loop raise its count until its end.

    The count is there before, so that a loop that never turns is silent, too.
    """
    numbers = cells.make(BEATS, (loop_name,), 1)

    def beat() -> None:
        numbers[0] += 1
        asyncio.get_running_loop().call_later(seconds, beat)

    return beat


class Silence:
    """The time for which counts have not changed, as looks at them see it.

    A look counts for LONGEST_LOOK_SECONDS at most. So a parent that was stopped together with its workers blames none
    of them when all go on.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._last_look = clock, clock()
        self._counts: dict[Any, float] = {}
        self._seconds: dict[Any, float] = {}

    def after(self, counts: Mapping[Any, float]) -> float:
        """Look at the counts. Returns the seconds of the longest silence among them; 0 without any."""
        now = self._clock()
        step, self._last_look = min(now - self._last_look, LONGEST_LOOK_SECONDS), now
        for name, count in counts.items():
            is_same = self._counts.get(name) == count
            self._seconds[name] = self._seconds[name] + step if is_same else 0.0
            self._counts[name] = count
        return max(self._seconds.values(), default=0.0)
