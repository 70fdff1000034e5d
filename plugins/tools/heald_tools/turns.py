"""Runtimes that run the same model in turn, none timed in the wake of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter, sleep
from typing import Any

from heald.api.cli import lasting

PAUSE = 0.03  # seconds before a turn: the previous runtime's threads spin for a while, then sleep
UNTIMED, WAKING = 2, 0.005  # least warm-up runs and seconds: caches hold others' data, own threads sleep
TIMED, SHORTEST = 6, 0.01  # least runs and seconds of a turn
MAX_TURN_SECONDS = 0.5  # approximate seconds of a turn: slow models get fewer runs
MIN_TURNS = 5  # turns

Run = Callable[[], Any]
Turn = list[float]  # seconds of each timed run


def time_in_turns(
    runs: Sequence[Run], seconds: float, what: str, turns: Sequence[list[Turn]] | None = None
) -> Sequence[list[Turn]]:
    """Return the turns of each runtime, about `seconds` of turns for each. Turns of one index follow each other.

    A single runtime has no others to disturb it: all its runs are timed, without a pause. `turns` has a list for each
    runtime, to be filled: it has the turns so far after KeyboardInterrupt.
    """
    alone = len(runs) == 1
    turns = [[] for _ in runs] if turns is None else turns
    fit = max(1, int(MAX_TURN_SECONDS / max(_repeat(run, 1, 0.0)[0] for run in runs)))
    for _ in lasting(seconds * len(runs), MIN_TURNS, what):
        for run, turns_of_run in zip(runs, turns, strict=True):
            if not alone:
                sleep(PAUSE)
                _repeat(run, min(UNTIMED, fit), WAKING)
            turns_of_run.append(_repeat(run, min(TIMED, fit), SHORTEST))
    return turns


def ratio(ours: Sequence[Turn], theirs: Sequence[Turn]) -> float:
    """Return the median over turns of our median time in a turn over theirs."""
    return median(median(a) / median(b) for a, b in zip(ours, theirs, strict=False))  # a turn may be cut off


def _repeat(run: Run, least: int, seconds: float) -> Turn:
    """Return the seconds of each run. Runs repeat `least` times or more, and for `seconds` or longer."""
    times: Turn = []
    end = perf_counter() + seconds
    while len(times) < least or perf_counter() < end:
        started = perf_counter()
        run()
        times.append(perf_counter() - started)
    return times
