"""Datasets that join several elements into one, and that split elements."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
from heald.api import AsyncValue, Step, errors, shape_text

from ..element_types import Array
from ..resources.handles import to_handle
from .interface import UNKNOWN, Dataset, Element, Iterator, MemoryAccount, Pull, Spec
from .sources import ElementsDataset

PaddedShape = tuple[int, ...]  # -1 for the largest size in the batch


class BatchDataset(Dataset):
    """Batches of `size` elements, stacked along a new dimension 0. The last one may be smaller."""

    name = "BatchDataset"

    def __init__(self, spec: Spec, source: Dataset, size: int, *, drops_remainder: bool) -> None:
        if size <= 0:
            raise errors.InvalidArgument("Batch size must be greater than zero.")
        cardinality = source.cardinality
        if cardinality >= 0:
            cardinality = (cardinality if drops_remainder else cardinality + size - 1) // size
        super().__init__(spec, cardinality)
        self.source, self.size, self.drops_remainder = source, size, drops_remainder

    def make_iterator(self, level: int) -> Iterator:
        return _BatchIterator(self, self.source.iterator(level))

    def join(self, elements: list[Element], step: Step) -> Element:
        """Return the batch of these elements."""
        step.host.memory.ask(sum(component.nbytes for element in elements for component in element), "a batch")
        return tuple(_stack(number, components) for number, components in enumerate(zip(*elements, strict=True)))


def _stack(number: int, components: Sequence[Array]) -> Array:
    shape = components[0].shape
    for i, component in enumerate(components):
        if component.shape != shape:
            raise errors.InvalidArgument(
                f"Cannot batch tensors with different shapes in component {number}. First element had shape "
                f"{shape_text(shape)} and element {i} had shape {shape_text(component.shape)}.")
    return np.stack(components)


class PaddedBatchDataset(BatchDataset):
    """Batches of elements that are padded to the sizes in `shapes`."""

    name = "PaddedBatchDataset"

    def __init__(
        self, spec: Spec, source: Dataset, size: int, shapes: Sequence[PaddedShape], values: Sequence[Array], *,
        drops_remainder: bool,
    ) -> None:
        super().__init__(spec, source, size, drops_remainder=drops_remainder)
        for value in values:
            if value.ndim:
                raise errors.InvalidArgument("All padding values must be scalars")
        self._shapes, self._values = shapes, values

    def join(self, elements: list[Element], step: Step) -> Element:
        parts = zip(zip(*elements, strict=True), self._shapes, self._values, strict=True)
        return tuple(_pad(number, components, shape, value, step)
                     for number, (components, shape, value) in enumerate(parts))


def _pad(number: int, components: Sequence[Array], padded: PaddedShape, value: Array, step: Step) -> Array:
    for component in components:
        if component.ndim != len(padded):
            raise errors.InvalidArgument(
                f"All elements in a batch must have the same rank as the padded shape for component{number}: expected "
                f"rank {len(padded)} but got element with rank {component.ndim}")
    sizes = [max(sizes) for sizes in zip(*(component.shape for component in components), strict=True)]
    shape = [largest if size < 0 else size for size, largest in zip(padded, sizes, strict=True)]
    if any(largest > size for largest, size in zip(sizes, shape, strict=True)):
        raise errors.DataLoss(f"Attempted to pad to a smaller size than the input element. Component {number} has a "
                              f"size of {shape_text(tuple(sizes))}, padded to {shape_text(tuple(shape))}")
    count = len(components)
    for size in shape:
        count *= size
    step.host.memory.ask(count * value.dtype.itemsize, "a padded batch")
    batch = np.full((len(components), *shape), value[()], value.dtype)
    for i, component in enumerate(components):
        part: tuple[Any, ...] = (i, *map(slice, component.shape), ...)
        batch[part] = component
    return batch


class _BatchIterator(Iterator):
    def __init__(self, dataset: BatchDataset, source: Iterator) -> None:
        self._dataset, self._source, self._is_over = dataset, source, False

    def pull(self, step: Step) -> Pull:
        if self._is_over:
            return None
        elements = yield from pull_several(self._source, self._dataset.size, step)
        self._is_over = is_short = len(elements) < self._dataset.size
        if not elements or (is_short and self._dataset.drops_remainder):
            return None
        return self._dataset.join(elements, step)


def pull_several(source: Iterator, count: int, step: Step) -> Generator[list[AsyncValue], None, list[Element]]:
    """Return the next `count` elements, or fewer at the end."""
    elements: list[Element] = []
    account = MemoryAccount(step, "the elements of a batch")
    while len(elements) < count:
        step.check()
        element = yield from source.pull(step)
        if element is None:
            break
        account.add(element)
        elements.append(element)
    return elements


class WindowDataset(Dataset):
    """Windows of `size` elements that are `stride` apart; each begins `shift` elements behind the one before it. An
    element has a dataset for each component."""

    name = "WindowDataset"

    def __init__(
        self, spec: Spec, source: Dataset, size: int, shift: int, stride: int, drops_remainder: bool
    ) -> None:
        for what, number in (("size", size), ("shift", shift), ("stride", stride)):
            if number <= 0:
                raise errors.InvalidArgument(f"Window {what} must be greater than zero.")
        self.span = (size - 1) * stride + 1
        cardinality = source.cardinality
        if cardinality >= 0 and drops_remainder:
            cardinality = max(0, (cardinality - self.span) // shift + 1)
        elif cardinality >= 0:
            cardinality = (cardinality + shift - 1) // shift
        super().__init__(spec, cardinality)
        self.source, self.shift, self.stride, self.drops_remainder = source, shift, stride, drops_remainder

    def make_iterator(self, level: int) -> Iterator:
        return _WindowIterator(self, self.source.iterator(level))

    def window(self, elements: Sequence[Element]) -> Element:
        """Return the datasets of the components of these elements."""
        types, shapes = self.source.spec
        specs = (Spec((dtype,), (shape,)) for dtype, shape in zip(types, shapes, strict=True))
        return tuple(to_handle(ElementsDataset(spec, [(component,) for component in components]))
                     for spec, components in zip(specs, zip(*elements, strict=True), strict=True))


class _WindowIterator(Iterator):
    def __init__(self, dataset: WindowDataset, source: Iterator) -> None:
        self._dataset = dataset
        self._source: Iterator | None = source
        self._elements: list[Element] = []

    def pull(self, step: Step) -> Pull:
        span, shift = self._dataset.span, self._dataset.shift
        if self._source is not None:
            self._elements += yield from self._pull_more(span - len(self._elements), step)
        if not self._elements or (self._dataset.drops_remainder and len(self._elements) < span):
            self._elements, self._source = [], None
            return None
        window = self._dataset.window(self._elements[:: self._dataset.stride])
        for _ in range(shift - len(self._elements)):
            if self._source is None:
                break
            yield from self._pull_more(1, step)
        del self._elements[:shift]
        return window

    def _pull_more(self, count: int, step: Step) -> Generator[list[AsyncValue], None, list[Element]]:
        """Return the next elements of the source, and drop the source at its end."""
        if self._source is None:
            return []
        elements = yield from pull_several(self._source, count, step)
        if len(elements) < count:
            self._source = None
        return elements


class UnbatchDataset(Dataset):
    """The slices of the source's elements along dimension 0."""

    name = "UnbatchDataset"

    def __init__(self, spec: Spec, source: Dataset) -> None:
        sizes = [shape[0] for shape in source.spec.shapes if shape and shape[0] is not None]
        cardinality = source.cardinality
        if cardinality > 0:
            cardinality = cardinality * sizes[0] if sizes else UNKNOWN
        super().__init__(spec, cardinality)
        self.source = source

    def make_iterator(self, level: int) -> Iterator:
        return _UnbatchIterator(self.source.iterator(level))


class _UnbatchIterator(Iterator):
    def __init__(self, source: Iterator) -> None:
        self._source = source
        self._element: Element = ()
        self._next = self._count = 0

    def pull(self, step: Step) -> Pull:
        while self._next >= self._count:
            step.check()
            element = yield from self._source.pull(step)
            if element is None:
                return None
            self._element, self._next, self._count = element, 0, _common_size(element)
        self._next += 1
        return tuple(component[self._next - 1, ...] for component in self._element)


def _common_size(element: Element) -> int:
    if not all(component.ndim for component in element):
        raise errors.InvalidArgument("Input element must have a non-scalar value in each component.")
    size = len(element[0])
    for i, component in enumerate(element):
        if len(component) != size:
            raise errors.InvalidArgument(
                f"Input element must have the same batch size in each component. Component 0 had size {size} but "
                f"component {i} had size, {len(component)}.")
    return size
