"""Runtimes that run the same in turn, none of them timed in the wake of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter, sleep
from typing import Any

from weft.api.cli import lasting

PAUSE = 0.03  # seconds before a turn: threads of the runtime before, which spin for a while, sleep by then
UNTIMED, WAKING = 2, 0.005  # runs and seconds, at least: caches are full of what others needed, own threads sleep
TIMED, SHORTEST = 6, 0.01  # runs and seconds of a turn, at least
LONGEST = 0.5  # seconds of a turn, about: where runs take long it has fewer
LEAST = 5  # turns

Run = Callable[[], Any]
Turn = list[float]  # seconds of each timed run


def in_turn(runs: Sequence[Run], seconds: float, what: str) -> list[list[Turn]]:
    """The turns of each, which take so long all together for each: those of one index follow each other.

    One that is alone is not disturbed: all its runs are timed, without a pause.
    """
    alone = len(runs) == 1
    fit = max(1, int(LONGEST / max(_repeated(run, 1, 0.0)[0] for run in runs)))
    turns: list[list[Turn]] = [[] for _ in runs]
    for _ in lasting(seconds * len(runs), LEAST, what):
        for run, found in zip(runs, turns, strict=True):
            if not alone:
                sleep(PAUSE)
                _repeated(run, min(UNTIMED, fit), WAKING)
            found.append(_repeated(run, min(TIMED, fit), SHORTEST))
    return turns


def ratio(ours: Sequence[Turn], theirs: Sequence[Turn]) -> float:
    """The median over turns of our median time in it over theirs."""
    return median(median(a) / median(b) for a, b in zip(ours, theirs, strict=True))


def _repeated(run: Run, least: int, seconds: float) -> Turn:
    """The seconds of each run, of so many at least and for so long at least."""
    times: Turn = []
    end = perf_counter() + seconds
    while len(times) < least or perf_counter() < end:
        started = perf_counter()
        run()
        times.append(perf_counter() - started)
    return times
