"""Datasets in random order, with TensorFlow's numbers for equal seeds.

A buffer holds up to `size` elements. Each pull fills it, draws one of them and puts the oldest in its place. The buffer
is a ring: the elements are at the indices from `start` to `end`, modulo `size`.
"""

from __future__ import annotations

from threading import Lock

from heald.api import Step, errors, inherited

from ..philox import Sequence as RandomSequence
from ..philox import words
from .interface import UNKNOWN, Dataset, Element, Iterator, MemoryAccount, Pull, Spec

UNLIMITED = 1 << 62  # elements of a buffer for all


class SeedGenerator:
    """The seeds of the iterations over a dataset. `reshuffles`: each has others. Two seeds of 0 are random ones."""

    def __init__(self, seed: int, seed2: int, *, reshuffles: bool) -> None:
        self._start = RandomSequence(seed, seed2).reserve(0)
        self._seeds = words(*self._start) if reshuffles else None
        self._lock = Lock()
        inherited.add(self)

    def next_start(self) -> tuple[int, int]:
        """Return the key and the first counter of the random words of the next iteration."""
        if self._seeds is None:
            return self._start
        with self._lock:
            return next(self._seeds), next(self._seeds) << 64

    def forked(self) -> None:
        self._lock = Lock()


class ShuffleDataset(Dataset):
    """The elements in random order. A buffer of UNKNOWN elements holds all."""

    name = "ShuffleDataset"

    def __init__(self, spec: Spec, source: Dataset, size: int, seeds: SeedGenerator) -> None:
        if size < 1 and size != UNKNOWN:
            raise errors.InvalidArgument("buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
        super().__init__(spec, source.cardinality)
        self.source, self.seeds = source, seeds
        self.size = UNLIMITED if size == UNKNOWN else size

    def make_iterator(self, level: int) -> Iterator:
        return _ShuffleIterator(self.source.iterator(level), self.size, self.seeds.next_start())


class _ShuffleIterator(Iterator):
    def __init__(self, source: Iterator, size: int, random_start: tuple[int, int]) -> None:
        self._source: Iterator | None = source
        self._size = size
        self._words = words(*random_start)
        self._ring: list[Element] = []
        self._start = self._end = 0
        self._account: MemoryAccount | None = None

    def pull(self, step: Step) -> Pull:
        while self._source is not None and self._end - self._start < self._size:
            step.check()
            element = yield from self._source.pull(step)
            if element is None:
                self._source = None
            else:
                self._add(element, step)
        if self._start == self._end:
            return None
        oldest = self._start % self._size
        drawn = (self._start + next(self._words) % (self._end - self._start)) % self._size
        element, self._ring[drawn] = self._ring[drawn], self._ring[oldest]
        self._start += 1
        return element

    def _add(self, element: Element, step: Step) -> None:
        place = self._end % self._size
        if place < len(self._ring):
            self._ring[place] = element
        else:
            if self._account is None:
                self._account = MemoryAccount(step, "the buffer of a shuffle")
            self._account.add(element)
            self._ring.append(element)
        self._end += 1
