"""Fair timings on a shared machine: the compared functions run in turn. The result is the median ratio of pairs, or the
least time of each function that takes long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

Work = Callable[[], object]
TURN = 6  # calls

def seconds(function: Callable[[], object], repeat: int) -> float:
    """Seconds that one call takes, over `repeat` calls."""
    start = perf_counter()
    for _ in range(repeat):
        function()
    return (perf_counter() - start) / repeat


def in_turn(
    functions: Sequence[Callable[[], object]], repeats: Sequence[int], rounds: int = 31
) -> list[tuple[float, ...]]:
    """Seconds of a call of each function in all rounds. Times with the same index belong to the same round.

    Some calls before each turn are not timed, for the caches are full of the other functions' data.
    """
    def turn(function: Callable[[], object], repeat: int) -> float:
        for _ in range(repeat // 4):
            function()
        return seconds(function, repeat)

    return list(zip(*[[*map(turn, functions, repeats)] for _ in range(rounds)], strict=True))


def ratio(a: Sequence[float], b: Sequence[float]) -> float:
    """The median of the ratios a/b of times measured in turn."""
    return median(x / y for x, y in zip(a, b, strict=True))


def time_pairs(
    a: Callable[[], object], b: Callable[[], object], repeat: int, pairs: int = 31
) -> tuple[float, float, float]:
    """Median seconds of a call of `a`, of `b`, and the median of the ratios a/b, over interleaved pairs."""
    ours, theirs = in_turn([a, b], [repeat, repeat], pairs)
    return median(ours), median(theirs), ratio(ours, theirs)


def least(*works: Work, turns: int = 8) -> list[float]:
    """The least seconds of each function, in turns of some calls: spinning threads of one slow the next at first."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(turns):
        for work, turn_times in zip(works, times, strict=True):
            for _ in range(TURN):
                start = perf_counter()
                work()
                turn_times.append(perf_counter() - start)
    return [min(turn_times) for turn_times in times]
