"""Runtimes that run the same in turn, none of them timed in the wake of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter, sleep
from typing import Any

from .progress import lasting

PAUSE = 0.03  # seconds before a turn: threads of the runtime before, which spin for a while, sleep by then
UNTIMED, TIMED = 2, 6  # runs of a turn: the first find the caches full of what the others needed
LONGEST = 0.5  # seconds that the timed runs of a turn take, about, where one run takes long
LEAST = 5  # turns

Run = Callable[[], Any]
Turn = list[float]  # seconds of each timed run


def in_turn(runs: Sequence[Run], seconds: float, what: str) -> list[list[Turn]]:
    """The turns of each, which take so long all together for each: those of one index follow each other.

    One that is alone is not disturbed: all its runs are timed, without a pause.
    """
    alone = len(runs) == 1
    count = max(1, min(TIMED, int(LONGEST / max(map(_seconds, runs)))))
    turns: list[list[Turn]] = [[] for _ in runs]
    for _ in lasting(seconds * len(runs), LEAST, what):
        for run, found in zip(runs, turns, strict=True):
            if not alone:
                sleep(PAUSE)
                for _ in range(min(UNTIMED, count)):
                    run()
            found.append([_seconds(run) for _ in range(count)])
    return turns


def ratio(ours: Sequence[Turn], theirs: Sequence[Turn]) -> float:
    """The median over turns of our median time in it over theirs."""
    return median(median(a) / median(b) for a, b in zip(ours, theirs, strict=True))


def _seconds(run: Run) -> float:
    started = perf_counter()
    run()
    return perf_counter() - started
