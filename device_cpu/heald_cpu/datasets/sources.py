"""Datasets without sources: a list of elements, the slices of tensors, a range of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from heald.api import Step, errors

from ..element_types import Array
from .interface import Dataset, Element, Iterator, Pull, Spec


class ElementsDataset(Dataset):
    """A list of elements."""

    name = "ElementsDataset"

    def __init__(self, spec: Spec, elements: Sequence[Element]) -> None:
        super().__init__(spec, len(elements))
        self._elements = elements

    def make_iterator(self, level: int) -> Iterator:
        return _IndexedIterator(self, self.cardinality)

    def element(self, index: int) -> Element:
        return self._elements[index]


class TensorSliceDataset(Dataset):
    """The slices of tensors along dimension 0, of one size in all."""

    name = "TensorSliceDataset"

    def __init__(self, spec: Spec, components: tuple[Array, ...]) -> None:
        if not all(component.ndim for component in components):
            raise errors.InvalidArgument("All components must be at least 1-dimensional")
        count = len(components[0])
        for i, component in enumerate(components):
            if len(component) != count:
                raise errors.InvalidArgument(f"All components must have the same size in the 0th dimension: component "
                                             f"{i} has {len(component)}, component 0 has {count}")
        super().__init__(spec, count)
        self._components = components

    def make_iterator(self, level: int) -> Iterator:
        return _IndexedIterator(self, self.cardinality)

    def element(self, index: int) -> Element:
        return tuple(component[index, ...] for component in self._components)


class RangeDataset(Dataset):
    """The numbers from `start` to `stop`, excluded, as scalars of the one type of the spec."""

    name = "RangeDataset"

    def __init__(self, spec: Spec, start: int, stop: int, step: int) -> None:
        if not step:
            raise errors.InvalidArgument("step must be a non-zero integer.")
        super().__init__(spec, max(0, -((start - stop) // step)))
        self._start, self._step = start, step
        self._dtype = spec.types[0].numpy

    def make_iterator(self, level: int) -> Iterator:
        return _IndexedIterator(self, self.cardinality)

    def element(self, index: int) -> Element:
        return (np.array(self._start + index * self._step, np.int64).astype(self._dtype),)


class _IndexedIterator(Iterator):
    """The elements of a dataset that has them by index."""

    def __init__(self, dataset: ElementsDataset | TensorSliceDataset | RangeDataset, count: int) -> None:
        self._dataset, self._count, self._next = dataset, count, 0

    def pull(self, step: Step) -> Pull:
        if self._next >= self._count:
            return None
        self._next += 1
        return self._dataset.element(self._next - 1)
        yield  # a generator, as each pull
