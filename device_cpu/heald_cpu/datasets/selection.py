"""Datasets whose elements are elements of their sources: fewer, more, joined, in other order, kept, counted."""

from __future__ import annotations

from collections.abc import Sequence

from heald.api import Step, dtypes, errors

from .interface import INFINITE, UNKNOWN, Dataset, Element, Iterator, MemoryAccount, Pull, Spec


class TakeDataset(Dataset):
    """The first `count` elements; all for a negative count."""

    name = "TakeDataset"

    def __init__(self, spec: Spec, source: Dataset, count: int) -> None:
        cardinality = source.cardinality
        if count >= 0 and cardinality != UNKNOWN:
            cardinality = count if cardinality == INFINITE else min(count, cardinality)
        super().__init__(spec, cardinality)
        self.source, self.count = source, count

    def make_iterator(self, level: int) -> Iterator:
        return _TakeIterator(self.source.iterator(level), self.count)


class _TakeIterator(Iterator):
    def __init__(self, source: Iterator, count: int) -> None:
        self._source, self._left = source, count

    def pull(self, step: Step) -> Pull:
        if not self._left:
            return None
        if self._left > 0:
            self._left -= 1
        element = yield from self._source.pull(step)
        if element is None:
            self._left = 0
        return element


class SkipDataset(Dataset):
    """The elements behind the first `count`; none for a negative count."""

    name = "SkipDataset"

    def __init__(self, spec: Spec, source: Dataset, count: int) -> None:
        cardinality = source.cardinality
        super().__init__(spec, 0 if count < 0 else cardinality if cardinality < 0 else max(0, cardinality - count))
        self.source, self.count = source, count

    def make_iterator(self, level: int) -> Iterator:
        if self.count < 0:
            return _ConcatenateIterator([])
        return _SkipIterator(self.source.iterator(level), self.count)


class _SkipIterator(Iterator):
    def __init__(self, source: Iterator, count: int) -> None:
        self._source, self._left = source, count

    def pull(self, step: Step) -> Pull:
        while self._left:
            step.check()
            self._left -= 1
            if (yield from self._source.pull(step)) is None:
                self._left = 0
        return (yield from self._source.pull(step))


class RepeatDataset(Dataset):
    """The elements `count` times; for ever for a negative count."""

    name = "RepeatDataset"

    def __init__(self, spec: Spec, source: Dataset, count: int) -> None:
        cardinality = source.cardinality
        if count < 0:
            cardinality = 0 if cardinality == 0 else INFINITE
        elif cardinality >= 0:
            cardinality *= count
        super().__init__(spec, 0 if count == 0 else cardinality)
        self.source, self.count = source, count

    def make_iterator(self, level: int) -> Iterator:
        return _RepeatIterator(self, level)


class _RepeatIterator(Iterator):
    def __init__(self, dataset: RepeatDataset, level: int) -> None:
        self._dataset, self._level = dataset, level
        self._left = dataset.count
        self._source = dataset.source.iterator(level)
        self._is_empty = True  # the current repetition has had no element

    def pull(self, step: Step) -> Pull:
        while self._left:
            step.check()
            element = yield from self._source.pull(step)
            if element is not None:
                self._is_empty = False
                return element
            self._left = 0 if self._left < 0 and self._is_empty else self._left - (self._left > 0)
            self._source, self._is_empty = self._dataset.source.iterator(self._level), True
        return None


class ShardDataset(Dataset):
    """The elements whose index has the remainder `index` by `count`."""

    name = "ShardDataset"

    def __init__(self, spec: Spec, source: Dataset, count: int, index: int) -> None:
        if count < 1:
            raise errors.InvalidArgument("Number of shards must be greater than zero (currently num_shards = "
                                         f"{count}).")
        if not 0 <= index < count:
            raise errors.InvalidArgument(f"Index must be between 0 and {count - 1} (currently index = {index}).")
        cardinality = source.cardinality
        super().__init__(spec, cardinality if cardinality < 0 else (cardinality - index + count - 1) // count)
        self.source, self.count, self.index = source, count, index

    def make_iterator(self, level: int) -> Iterator:
        return _ShardIterator(self.source.iterator(level), self.count, self.index)


class _ShardIterator(Iterator):
    def __init__(self, source: Iterator, count: int, index: int) -> None:
        self._source, self._between, self._left = source, count - 1, index

    def pull(self, step: Step) -> Pull:
        while self._left:
            step.check()
            self._left -= 1
            if (yield from self._source.pull(step)) is None:
                return None
        self._left = self._between
        return (yield from self._source.pull(step))


class ConcatenateDataset(Dataset):
    """The elements of one dataset, and then those of another one of the same types."""

    name = "ConcatenateDataset"

    def __init__(self, spec: Spec, first: Dataset, second: Dataset) -> None:
        if first.spec.types != second.spec.types:
            raise errors.InvalidArgument(f"input dataset and another dataset have different output_types "
                                         f"{_names(first)} and {_names(second)}")
        both = first.cardinality, second.cardinality
        super().__init__(spec, INFINITE if INFINITE in both else UNKNOWN if UNKNOWN in both else sum(both))
        self.sources = first, second

    def make_iterator(self, level: int) -> Iterator:
        return _ConcatenateIterator([source.iterator(level) for source in self.sources])


def _names(dataset: Dataset) -> str:
    return f"({', '.join(dtype.name for dtype in dataset.spec.types)})"


class _ConcatenateIterator(Iterator):
    def __init__(self, sources: list[Iterator]) -> None:
        self._sources = sources

    def pull(self, step: Step) -> Pull:
        while self._sources:
            element = yield from self._sources[0].pull(step)
            if element is not None:
                return element
            self._sources = self._sources[1:]
        return None


class ZipDataset(Dataset):
    """The components of one element of each source, until one ends."""

    name = "ZipDataset"

    def __init__(self, spec: Spec, sources: Sequence[Dataset]) -> None:
        sizes = [source.cardinality for source in sources]
        finite = [size for size in sizes if size >= 0]
        super().__init__(spec, UNKNOWN if UNKNOWN in sizes else min(finite) if finite else INFINITE)
        self.sources = sources

    def make_iterator(self, level: int) -> Iterator:
        return _ZipIterator([source.iterator(level) for source in self.sources])


class _ZipIterator(Iterator):
    def __init__(self, sources: list[Iterator]) -> None:
        self._sources = sources

    def pull(self, step: Step) -> Pull:
        components: Element = ()
        for source in self._sources:
            element = yield from source.pull(step)
            if element is None:
                self._sources = []
                return None
            components += element
        return components or None


class DirectedInterleaveDataset(Dataset):
    """An element of one of several sources for each index that a dataset of int64 scalars gives.

    `stops`: the first end of a source is the end. Otherwise an index of a source without more elements is skipped.
    """

    name = "DirectedInterleaveDataset"

    def __init__(self, spec: Spec, selector: Dataset, sources: Sequence[Dataset], *, stops: bool) -> None:
        super().__init__(spec, UNKNOWN)
        self.selector, self.sources, self.stops = selector, sources, stops
        if selector.spec.types != (dtypes.int64,):
            raise errors.InvalidArgument("The selector input must be a dataset of scalar int64 elements.")

    def make_iterator(self, level: int) -> Iterator:
        return _DirectedIterator(self, level)


class _DirectedIterator(Iterator):
    def __init__(self, dataset: DirectedInterleaveDataset, level: int) -> None:
        self._selector = dataset.selector.iterator(level)
        self._sources: list[Iterator | None] = [source.iterator(level) for source in dataset.sources]
        self._stops = dataset.stops

    def pull(self, step: Step) -> Pull:
        while any(self._sources):
            step.check()
            selected = yield from self._selector.pull(step)
            if selected is None:
                break
            index = int(selected[0])
            if not 0 <= index < len(self._sources):
                raise errors.InvalidArgument(f"Selector index out of range: {index} >= {len(self._sources)}")
            source = self._sources[index]
            element = None if source is None else (yield from source.pull(step))
            if element is not None:
                return element
            self._sources = [] if self._stops else [other if other is not source else None for other in self._sources]
        self._sources = []
        return None


class CacheDataset(Dataset):
    """The elements of the source, kept once an iterator has come to the end."""

    name = "CacheDataset"

    def __init__(self, spec: Spec, source: Dataset) -> None:
        super().__init__(spec, source.cardinality)
        self.source = source
        self.elements: list[Element] | None = None

    def make_iterator(self, level: int) -> Iterator:
        return _CacheIterator(self, level)


class _CacheIterator(Iterator):
    """The first pull decides between the kept elements and the source."""

    def __init__(self, dataset: CacheDataset, level: int) -> None:
        self._dataset = dataset
        self._source = dataset.source.iterator(level)
        self._elements: list[Element] | None = None
        self._next = 0
        self._account: MemoryAccount | None = None

    def pull(self, step: Step) -> Pull:
        if self._elements is None:
            self._elements = self._dataset.elements
            self._account = None if self._elements is not None else MemoryAccount(step, "a cache of elements")
            self._elements = [] if self._elements is None else self._elements
        if self._account is None:
            self._next += 1
            return self._elements[self._next - 1] if self._next <= len(self._elements) else None
        element = yield from self._source.pull(step)
        if element is None:
            self._dataset.elements = self._elements
            self._account, self._next = None, len(self._elements)
        else:
            self._account.add(element)
            self._elements.append(element)
        return element


class AssertCardinalityDataset(Dataset):
    """The elements of the source, whose number is checked at the end."""

    name = "AssertCardinalityDataset"

    def __init__(self, spec: Spec, source: Dataset, count: int) -> None:
        super().__init__(spec, count)
        self.source = source

    def make_iterator(self, level: int) -> Iterator:
        return _CountingIterator(self.source.iterator(level), self.cardinality)


class _CountingIterator(Iterator):
    def __init__(self, source: Iterator, expected: int) -> None:
        self._source, self._expected, self._count = source, expected, 0

    def pull(self, step: Step) -> Pull:
        element = yield from self._source.pull(step)
        if element is not None:
            self._count += 1
        expected = _elements_text(self._expected)
        if element is None and self._expected not in (UNKNOWN, self._count):
            raise errors.FailedPrecondition(f"Input dataset was expected to contain {expected} but contained only "
                                            f"{_elements_text(self._count)}.")
        if element is not None and 0 <= self._expected < self._count:
            raise errors.FailedPrecondition(f"Input dataset was expected to contain {expected} but contained at least "
                                            f"{_elements_text(self._count)}.")
        return element


def _elements_text(count: int) -> str:
    return "an infinite number of elements" if count == INFINITE else f"{count} element{'s' * (count != 1)}"
