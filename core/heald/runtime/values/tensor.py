"""Descriptions of a tensor before the run: TensorMetadata, its type and shape, and ValueInfo, with the elements if
known.

A few bytes of a file may describe an enormous tensor. So counts are compared with a limit before a list is made, and a
splat stays one element until a frame needs its array. Metadata functions read elements through `ValueInfo.vector` and
`ValueInfo.distinct` only.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgument
from ..support.records import dataclass
from .dtypes import DType, of_numpy

if TYPE_CHECKING:
    import numpy as np

MOST_DIMS = 254  # dimensions of a tensor, as in TensorFlow
LARGEST_ELEMENT_COUNT = 2**63 - 1  # elements of a tensor, as in TensorFlow
Shape = tuple[int | None, ...] | None  # None: unknown rank; a dimension of None: unknown length


class TensorMetadata:
    """Element type and shape. Compared by value; the hash is computed once."""

    __slots__ = ("_hash", "dtype", "shape")

    def __init__(self, dtype: DType, shape: Shape) -> None:
        self.dtype = dtype
        self.shape = shape
        try:
            self._hash = hash((dtype.number, shape))
        except (AttributeError, TypeError):
            raise _bad_metadata(dtype, shape) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorMetadata):
            return NotImplemented
        return self is other or (self.dtype is other.dtype and self.shape == other.shape)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{self.dtype.name}{shape_text(self.shape)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorMetadata, (self.dtype, self.shape)

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def is_static(self) -> bool:
        """True when the rank and every dimension are known."""
        return self.shape is not None and None not in self.shape

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape of a static tensor."""
        assert self.is_static
        return self.shape  # type: ignore[return-value]

    @property
    def size(self) -> int:
        """The number of elements of a static tensor."""
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        """The bytes of a static tensor of a fixed-size type, rows packed; 0 for other types."""
        return self.size * self.dtype.itemsize


def _bad_metadata(dtype: object, shape: object) -> InvalidArgument:
    """The error of metadata whose type or shape is of another class."""
    if not isinstance(dtype, DType):
        name = dtype.__name__ if isinstance(dtype, type) else repr(dtype)
        return InvalidArgument(f"{name} is no type of heald.api.dtypes",
                               hint="expected one such as dtypes.float32, or dtypes.of_numpy(array.dtype)")
    return InvalidArgument(f"a shape is a {type(shape).__name__}", hint="expected a tuple such as (None, 3), or None")


def shape_text(shape: Shape) -> str:
    """A shape as text: `[?,224,224,3]`, `[]` for a scalar, `<unknown rank>`."""
    if shape is None:
        return "<unknown rank>"
    return f"[{','.join('?' if d is None else str(d) for d in shape)}]"


def merge_shapes(a: Shape, b: Shape) -> Shape:
    """The shape that holds all facts of `a` and `b` about one tensor. Raises ValueError when they contradict."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b) or any(x is not None and y is not None and x != y for x, y in zip(a, b, strict=True)):
        raise ValueError(f"{shape_text(a)} and {shape_text(b)} differ")
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def are_compatible(a: TensorMetadata, b: TensorMetadata) -> bool:
    """True when one tensor may be of both descriptions."""
    if a is b:
        return True
    if a.dtype is not b.dtype:
        return False
    left, right = a.shape, b.shape
    if left is None or right is None or left == right:
        return True
    return len(left) == len(right) and all(x == y or x is None or y is None for x, y in zip(left, right, strict=True))


@dataclass(slots=True)
class ValueInfo:
    """The facts about a value that metadata functions and bind receive.

    `value`: The elements where they are known before the run, else None. Read-only.
    `dims`: A partly known integer vector, such as a shape that a graph computes: an entry per element, None where
        unknown.
    `handle`: The metadata of the content of a resource or variant.
    """

    meta: TensorMetadata
    value: np.ndarray[Any, Any] | None = None
    dims: tuple[int | None, ...] | None = None
    handle: tuple[TensorMetadata, ...] | None = None

    @property
    def dtype(self) -> DType:
        return self.meta.dtype

    @property
    def shape(self) -> Shape:
        return self.meta.shape

    @property
    def rank(self) -> int | None:
        return self.meta.rank

    @property
    def size(self) -> int:
        return self.meta.size

    @property
    def is_known(self) -> bool:
        """True when there is a `value`. Reading the value may have to compute it."""
        return self.value is not None

    def parts(self) -> tuple[Any, Any]:
        """A known value as an array and its factors, or None for no factors. The value is their product; the factors
        have its type. For callers that lay the elements out anew."""
        return self.value, None

    def distinct(self) -> np.ndarray[Any, Any] | None:
        """A known value without the repetitions of a splat: axes of stride 0 have length 1. None for an unknown value.

        A check of all elements needs no more of them. A few bytes of a file may stand for 2**48 equal elements.
        """
        value = self.value
        if value is None or 0 not in value.strides or not value.size:
            return value
        return value[tuple(slice(None) if stride else slice(1) for stride in value.strides)]

    def vector(self, most: int = MOST_DIMS) -> tuple[int | None, ...] | None:
        """The elements of an integer vector or scalar; an unknown element is None. None when nothing is known.

        Raises InvalidArgument for more than `most` elements. The default is the length of the longest shape.
        """
        value = self.value
        if value is None:
            return self.dims
        if value.size > most:
            raise InvalidArgument(f"{value.size} elements are given where at most {most} are expected: a tensor has "
                                  f"at most {MOST_DIMS} dimensions")
        return tuple(int(element) for element in value.flat)


def info(dtype: DType, shape: Shape) -> ValueInfo:
    """The ValueInfo of an element type and a shape; elements are unknown."""
    return ValueInfo(TensorMetadata(dtype, shape))


def fits(shape: tuple[int, ...], meta: TensorMetadata) -> bool:
    """True when an array of this shape may stand for the tensor."""
    expected = meta.shape
    if expected is None or shape == expected:
        return True
    return len(shape) == len(expected) and all(b is None or a == b for a, b in zip(shape, expected, strict=True))


def constant_info(value: np.ndarray[Any, Any]) -> ValueInfo:
    """The ValueInfo of an array: static metadata and known elements."""
    return ValueInfo(TensorMetadata(of_numpy(value.dtype), value.shape), value=value)
