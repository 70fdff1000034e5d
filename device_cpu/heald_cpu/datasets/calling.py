"""Datasets that call functions of the graph: for each element, for the choice of elements, for datasets of elements."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from heald.api import DEAD, AsyncValue, Callee, Step, await_payloads, errors

from ..element_types import Array
from .interface import UNKNOWN, Dataset, Element, Iterator, Pull, Spec, check_element, dataset_of

Payloads = Generator[list[AsyncValue], None, list[Array]]


class ElementFunction(NamedTuple):
    """A function of the graph with its captured values.

    `spec`: the elements that it takes. It is linked for their types and shapes.
    `has_effects`: the function returns a chain behind its results.
    """

    callee: Callee
    captured: tuple[Array, ...]
    spec: Spec
    has_effects: bool

    def call(self, step: Step, element: Element, state: Sequence[Array] = ()) -> Payloads:
        """Return the function's results. Raises InvalidArgument for an element that is not of `spec`."""
        check_element(self.spec, element)
        results = yield from await_payloads(step.invoke(self.callee, [*state, *element, *self.captured]))
        if any(result is DEAD for result in results):
            raise errors.InvalidArgument(f"function '{self.callee.name}' returns a dead value")
        return results[:-1] if self.has_effects else results

    def choose(self, step: Step, element: Element) -> Generator[list[AsyncValue], None, bool]:
        """Return the result of a predicate. Raises InvalidArgument for an array."""
        (decision,) = yield from self.call(step, element)
        if decision.shape:
            raise errors.InvalidArgument("Filter predicate `predicate` must return a scalar bool.")
        return bool(decision)


class FunctionDataset(Dataset):
    """A dataset of a source and a function."""

    def __init__(self, spec: Spec, source: Dataset, function: ElementFunction, cardinality: int) -> None:
        super().__init__(spec, cardinality)
        self.source, self.function = source, function


class MapDataset(FunctionDataset):
    """The function's results for each element. An OutOfRange of the function ends the dataset, unless
    `keeps_cardinality` is set."""

    name = "MapDataset"

    def __init__(self, spec: Spec, source: Dataset, function: ElementFunction, *, keeps_cardinality: bool) -> None:
        super().__init__(spec, source, function, source.cardinality if keeps_cardinality else UNKNOWN)
        self.keeps_cardinality = keeps_cardinality

    def make_iterator(self, level: int) -> Iterator:
        return _MapIterator(self, self.source.iterator(level), ())


class ScanDataset(MapDataset):
    """As MapDataset, with a state: the function takes it first and returns the next one first."""

    name = "ScanDataset"

    def __init__(
        self, spec: Spec, source: Dataset, function: ElementFunction, state: tuple[Array, ...], *,
        keeps_cardinality: bool
    ) -> None:
        super().__init__(spec, source, function, keeps_cardinality=keeps_cardinality)
        self._state = state

    def make_iterator(self, level: int) -> Iterator:
        return _MapIterator(self, self.source.iterator(level), self._state)


class _MapIterator(Iterator):
    def __init__(self, dataset: MapDataset, source: Iterator, state: tuple[Array, ...]) -> None:
        self._dataset, self._source, self._state = dataset, source, state

    def pull(self, step: Step) -> Pull:
        element = yield from self._source.pull(step)
        if element is None:
            return None
        try:
            results = yield from self._dataset.function.call(step, element, self._state)
        except errors.OutOfRange as error:
            if self._dataset.keeps_cardinality:
                raise errors.InvalidArgument(f"Function invocation produced OutOfRangeError: {error.message}") from None
            return None
        count = len(self._state)
        self._state = tuple(results[:count])
        return tuple(results[count:])


class FilterDataset(FunctionDataset):
    """The elements for which the function is true."""

    name = "FilterDataset"

    def make_iterator(self, level: int) -> Iterator:
        return _FilterIterator(self.function, self.source.iterator(level))


class _FilterIterator(Iterator):
    def __init__(self, predicate: ElementFunction, source: Iterator) -> None:
        self._predicate, self._source = predicate, source

    def pull(self, step: Step) -> Pull:
        while True:
            step.check()
            element = yield from self._source.pull(step)
            if element is None or (yield from self._predicate.choose(step, element)):
                return element


class TakeWhileDataset(FunctionDataset):
    """The elements in front of the first one for which the function is false."""

    name = "TakeWhileDataset"

    def make_iterator(self, level: int) -> Iterator:
        return _TakeWhileIterator(self.function, self.source.iterator(level))


class _TakeWhileIterator(Iterator):
    def __init__(self, predicate: ElementFunction, source: Iterator) -> None:
        self._predicate = predicate
        self._source: Iterator | None = source

    def pull(self, step: Step) -> Pull:
        element = None if self._source is None else (yield from self._source.pull(step))
        if element is not None and (yield from self._predicate.choose(step, element)):
            return element
        self._source = None
        return None


class InterleaveDataset(FunctionDataset):
    """The elements of the datasets that the function returns: of `cycle` datasets at a time, `block` elements each in
    turn. A cycle of 1 gives one dataset after the other."""

    name = "InterleaveDataset"

    def __init__(self, spec: Spec, source: Dataset, function: ElementFunction, cycle: int, block: int) -> None:
        if cycle <= 0:
            raise errors.InvalidArgument("cycle_length must be greater than zero.")
        if block <= 0:
            raise errors.InvalidArgument("block_length must be greater than zero.")
        super().__init__(spec, source, function, UNKNOWN)
        self.cycle, self.block = cycle, block

    def make_iterator(self, level: int) -> Iterator:
        return _InterleaveIterator(self, level)


class _InterleaveIterator(Iterator):
    """`_open` has the iterator of each place of the cycle that has one. A place without one is filled when its turn
    comes."""

    def __init__(self, dataset: InterleaveDataset, level: int) -> None:
        self._dataset, self._level = dataset, level
        self._source: Iterator | None = dataset.source.iterator(level)
        self._open: dict[int, Iterator] = {}
        self._place = self._given = 0  # the current place, and the elements that it gave in this turn

    def pull(self, step: Step) -> Pull:
        while self._open or self._source is not None:
            step.check()
            iterator = self._open.get(self._place)
            if iterator is None:
                yield from self._fill_place(step)
                continue
            element = yield from iterator.pull(step)
            if element is None:
                del self._open[self._place]
                self._advance()
                continue
            self._given += 1
            if self._given == self._dataset.block:
                self._advance()
            return element
        return None

    def _fill_place(self, step: Step) -> Generator[list[AsyncValue], None, None]:
        element = None if self._source is None else (yield from self._source.pull(step))
        if element is None:
            self._source = None
            self._place = min((place for place in self._open if place > self._place),
                              default=min(self._open, default=0))
            return
        (handle,) = yield from self._dataset.function.call(step, element)
        self._open[self._place] = dataset_of(handle).iterator(self._level)

    def _advance(self) -> None:
        self._given, self._place = 0, (self._place + 1) % self._dataset.cycle


def reduce_dataset(step: Step, source: Dataset, state: Sequence[Array], function: ElementFunction) -> Payloads:
    """Return the state after the function was called with it and each element."""
    iterator, values = source.iterator(), [*state]
    while True:
        step.check()
        element = yield from iterator.pull(step)
        if element is None:
            return values
        values = yield from function.call(step, element, values)
