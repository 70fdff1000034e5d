"""Fair timings on a shared machine: the things to compare run in turn, and what counts is the ratio pair by pair."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter


def seconds(function: Callable[[], object], repeat: int) -> float:
    """Seconds that one call takes, over `repeat` calls."""
    start = perf_counter()
    for _ in range(repeat):
        function()
    return (perf_counter() - start) / repeat


def paired(
    a: Callable[[], object], b: Callable[[], object], repeat: int, pairs: int = 31
) -> tuple[float, float, float]:
    """Median seconds of a call of `a`, of `b`, and the median of the ratios a/b, over interleaved pairs."""
    rows = [(seconds(a, repeat), seconds(b, repeat)) for _ in range(pairs)]
    return median(x for x, _ in rows), median(y for _, y in rows), median(x / y for x, y in rows)
