"""How many rows of a kind join in one brief run: as many as make the time of a row the least.

A larger batch takes less time a row, until a library divides its kernels among threads. It then waits for cores, which
a busy server's connections use. The model and the machine decide where that begins, so each run is measured:

    the size with the least mean time a row     is the largest that joins
    its double                                  joins too while it has had few runs, and once in RETRY_RUNS runs

A size whose runs do not prove to be brief is left out. Threads may race: a run is then not counted.
"""

from __future__ import annotations

from math import inf

FIRST_RUNS = 8  # of a size, before it is judged
SLOW_RUNS = 32  # of a size that is not brief, before it is left out
RETRY_RUNS = 64
AVERAGED_RUNS = 16
LARGEST_FACTOR = 4.0  # of the mean: the system stops a thread for much longer than it runs


class _Size:
    """The runs of one size: how many were brief, their mean seconds, and how many others came since the last."""

    __slots__ = ("mean", "runs", "slow_runs")

    def __init__(self) -> None:
        self.runs, self.slow_runs, self.mean = 0, 0, inf

    def add(self, seconds: float) -> None:
        self.runs += 1
        self.slow_runs = 0
        if self.runs == 1:
            self.mean = seconds
        self.mean += (min(seconds, LARGEST_FACTOR * self.mean) - self.mean) / min(self.runs, AVERAGED_RUNS)

    @property
    def is_left_out(self) -> bool:
        return self.slow_runs >= SLOW_RUNS


class JoinedRows:
    """`most_rows`: the rows that may join now; 0 where no size is brief."""

    def __init__(self) -> None:
        self._sizes: dict[int, _Size] = {}
        self._runs = 0
        self.most_rows = 1

    def add(self, size: int, seconds: float) -> None:
        """Record the time of a brief run of so many rows."""
        self._size(size).add(seconds)
        self._runs += 1
        self.most_rows = self._choose()

    def add_slow(self, size: int) -> None:
        """Count a run of a size that has not proven to be brief."""
        self._size(size).slow_runs += 1
        self.most_rows = self._choose()

    def _size(self, size: int) -> _Size:
        return self._sizes.setdefault(size, _Size())

    def _choose(self) -> int:
        sizes = {size: row.mean / size for size, row in self._sizes.items() if not row.is_left_out}
        if not sizes:
            return 0
        best = min(sizes, key=sizes.__getitem__)
        double = self._size(2 * best)
        is_tried = double.runs < FIRST_RUNS or not self._runs % RETRY_RUNS
        return 2 * best if is_tried and not double.is_left_out else best
