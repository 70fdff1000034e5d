"""Dataset and Iterator: the interfaces of all datasets, the checks of their types, and the account of kept elements."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from typing import ClassVar, NamedTuple

from heald.api import AsyncValue, DType, Shape, Step, errors, shape_text

from ..element_types import Array
from ..resources.handles import from_handle
from ..resources.partial_shape import fits

Element = tuple[Array, ...]
Pull = Generator[list[AsyncValue], None, Element | None]  # yields the values that it waits for
INFINITE, UNKNOWN = -1, -2  # cardinalities
MOST_LEVELS = 150  # iterators that pull from each other; each takes up to three frames of Python's stack
FIRST_REQUEST_BYTES = 1 << 20
BYTES_OF_AN_ARRAY = 112  # of the Python object beside its elements


class Spec(NamedTuple):
    """The types and partial shapes of an element's components."""

    types: tuple[DType, ...]
    shapes: tuple[Shape, ...]


class Iterator:
    """The state of one iteration over a dataset. One pull runs at a time."""

    def pull(self, step: Step) -> Pull:
        """Return the next element, None at the end and ever after."""
        raise NotImplementedError


class Dataset:
    """`cardinality`: the number of elements, or INFINITE or UNKNOWN."""

    name: ClassVar[str]

    def __init__(self, spec: Spec, cardinality: int) -> None:
        self.spec = spec
        self.cardinality = cardinality

    def iterator(self, level: int = 0) -> Iterator:
        """Return a new iterator. `level`: the number of iterators that pull from it.

        Raises ResourceExhausted beyond MOST_LEVELS.
        """
        if level >= MOST_LEVELS:
            raise errors.ResourceExhausted(f"a dataset of more than {MOST_LEVELS} nested transformations")
        return self.make_iterator(level + 1)

    def with_spec(self, spec: Spec) -> Dataset:
        """Return the same elements under another statement of their types and shapes. Raises InvalidArgument where both
        contradict."""
        if spec == self.spec:
            return self
        check_spec(spec, self.spec)
        dataset = copy(self)
        dataset.spec = spec
        return dataset

    def make_iterator(self, level: int) -> Iterator:
        """Return a new iterator. `level` is the level of the iterators of its sources."""
        raise NotImplementedError


class MemoryAccount:
    """The bytes of kept elements. The budget is asked again whenever they have doubled."""

    def __init__(self, step: Step, what: str) -> None:
        self._step, self._what = step, what
        self._bytes, self._next_request = 0, FIRST_REQUEST_BYTES

    def add(self, element: Element) -> None:
        """Count an element. Raises ResourceExhausted when the budget has no room for all of them."""
        self._bytes += sum(component.nbytes + BYTES_OF_AN_ARRAY for component in element)
        if self._bytes >= self._next_request:
            self._step.host.memory.ask(self._bytes, self._what)
            self._next_request = 2 * self._bytes


def dataset_of(handle: Array) -> Dataset:
    """Return the dataset of a variant. Raises InvalidArgument for another value."""
    return from_handle(handle, Dataset)


def check_spec(expected: Spec, spec: Spec) -> None:
    """Raises InvalidArgument where elements of `spec` are none of `expected`, in TensorFlow's words."""
    if len(expected.types) != len(spec.types):
        raise errors.InvalidArgument(f"Number of components does not match: expected {len(expected.types)} types but "
                                     f"got {len(spec.types)}.")
    for i, (dtype, other) in enumerate(zip(expected.types, spec.types, strict=True)):
        if dtype is not other:
            raise errors.InvalidArgument(f"Data type mismatch at component {i}: expected {dtype.name} but got "
                                         f"{other.name}.")
    for i, (shape, partial) in enumerate(zip(expected.shapes, spec.shapes, strict=True)):
        if not _are_compatible(shape, partial):
            raise errors.InvalidArgument(f"Incompatible shapes at component {i}: expected {shape_text(shape)} but got "
                                         f"{shape_text(partial)}.")


def _are_compatible(a: Shape, b: Shape) -> bool:
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def check_element(expected: Spec, element: Sequence[Array]) -> None:
    """Raises InvalidArgument where an element has other types or shapes than stated."""
    if len(element) != len(expected.types):
        raise errors.InvalidArgument(f"Number of components does not match: expected {len(expected.types)} types but "
                                     f"got {len(element)}.")
    for i, (component, dtype, shape) in enumerate(zip(element, *expected, strict=True)):
        if component.dtype != dtype.numpy:
            raise errors.InvalidArgument(f"Data type mismatch at component {i}: expected {dtype.name} but got "
                                         f"{component.dtype}.")
        if not fits(component.shape, shape):
            raise errors.InvalidArgument(f"Incompatible shapes at component {i}: expected {shape_text(shape)} but got "
                                         f"{shape_text(component.shape)}.")
