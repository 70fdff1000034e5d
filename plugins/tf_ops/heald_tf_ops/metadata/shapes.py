"""Checks on partly known shapes, with their error texts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heald.api import MOST_DIMS, InvalidArgument, Shape, TensorMetadata, ValueInfo, geometry, merge_shapes, shape_text

Dims = tuple[int | None, ...]
Pairs = tuple[tuple[int, int], ...]


def dims_of_rank(x: ValueInfo, rank: int, name: str) -> Dims:
    """Return the shape of an input that must have this rank; all lengths are unknown if the rank was."""
    if x.shape is None:
        return (None,) * rank
    if len(x.shape) != rank:
        raise InvalidArgument(f"{name} must have rank {rank}, given shape {shape_text(x.shape)}")
    return x.shape


def check_single(x: ValueInfo, name: str, *, most_rank: int = 0) -> None:
    """Raise InvalidArgument for an input of more than one element, or of none."""
    if x.rank is not None and (x.rank > most_rank or (x.meta.is_static and x.size != 1)):
        raise InvalidArgument(f"{name} must be a scalar, given shape {shape_text(x.shape)}")


def single_integer(x: ValueInfo, name: str, *, most_rank: int = 0) -> int | None:
    """Return the element of an input that must hold just one integer; None while it is unknown."""
    check_single(x, name, most_rank=most_rank)
    elements = x.vector()
    return elements[0] if elements else None


def count_in(x: ValueInfo, name: str, *, least: int = 0) -> int | None:
    """Like `single_integer`, for an input that is a count of at least `least`."""
    number = single_integer(x, name)
    if number is not None and number < least:
        raise InvalidArgument(f"{name} must be {'positive' if least else 'non-negative'}, got {number}")
    return number


def vector(x: ValueInfo, name: str, *, max_length: int = MOST_DIMS) -> Dims | None:
    """Return the elements of an integer input that must be a vector; None if even its length is unknown.

    Raises InvalidArgument for more than `max_length` elements: axes and shapes are no longer than a tensor's rank.
    """
    (length,) = dims_of_rank(x, 1, name)
    if length is not None:
        check_rank(length, name, max_length)
    elements = x.vector(max_length)
    return elements if elements is not None or length is None else (None,) * length


def lengths_in(x: ValueInfo, rank: int, name: str) -> Dims:
    """Return the elements of a vector that is the shape of a tensor of this rank.

    An unknown vector has `rank` unknown elements. The caller checks the number of elements.
    """
    elements = vector(x, name)
    return (None,) * rank if elements is None else elements


def check_rank(length: int, name: str, max_length: int = MOST_DIMS) -> None:
    """Raise InvalidArgument for an input that would list more dimensions than a tensor has."""
    if length > max_length:
        raise InvalidArgument(f"{name} has {length} elements, expected at most {max_length}")


def pairs_in(pairs: ValueInfo, rank: int | None, name: str) -> Pairs | None:
    """Return two lengths for each of `rank` dimensions, the rows of an input; None while they are unknown.

    Raises InvalidArgument for another shape, and for negative lengths.
    """
    rows, columns = dims_of_rank(pairs, 2, name)
    same_dim(columns, 2, f"the columns of {name} and 2")
    count = same_dim(rank, rows, f"the number of dimensions and the rows of {name}")
    if count is not None:
        check_rank(count, name)
    if pairs.value is None:
        return None
    length_pairs = tuple((int(before), int(after)) for before, after in pairs.value)
    if any(length < 0 for pair in length_pairs for length in pair):
        raise InvalidArgument(f"{name} must be non-negative: {[list(pair) for pair in length_pairs]}")
    return length_pairs


def shape_in(x: ValueInfo, name: str) -> Dims | None:
    """Return the elements of a vector that is a shape, as `vector` returns them."""
    shape = vector(x, name)
    if any(length is not None and length < 0 for length in shape or ()):
        raise InvalidArgument(f"{name} must have no negative dimension: {shape_text(shape)}")
    return shape


def axis_in(axis: int, rank: int, name: str) -> int:
    """Return `axis` counted from 0; a negative axis counts from the end."""
    if not -rank <= axis < rank:
        raise InvalidArgument(f"{name} {axis} is not in [{-rank}, {rank})")
    return axis % rank


def same_dim(a: int | None, b: int | None, what: str) -> int | None:
    """Return the length that two dimensions must share."""
    if a is not None and b is not None and a != b:
        raise InvalidArgument(f"{what} must be equal, but are {a} and {b}")
    return b if a is None else a


def same_shape(shapes: Sequence[Shape], what: str) -> Shape:
    """Return the merge of shapes that must be equal."""
    together: Shape = None
    for shape in shapes:
        try:
            together = merge_shapes(together, shape)
        except ValueError as error:
            raise InvalidArgument(f"{what}: {error}") from None
    return together


def broadcast_into(shape: Shape, target: Dims, what: str) -> Dims:
    """Return `target`, refined by `shape`; a tensor of `shape` must broadcast to `target`."""
    if shape is None:
        return target
    if len(shape) > len(target):
        raise InvalidArgument(f"{what}: rank of input ({len(shape)}) must be no greater than rank of output shape "
                              f"({len(target)})")
    return same_shape((target, geometry.broadcast_shapes(shape, target)), what) or ()


def elements_in(shape: Shape) -> int | None:
    """Return the number of elements of a tensor of this shape; None while it is unknown."""
    if shape is None:
        return None
    if 0 in shape:
        return 0
    return None if None in shape else prod(d for d in shape if d is not None)


def view(x: ValueInfo, shape: Shape) -> ValueInfo:
    """Return the elements of `x` under another shape."""
    meta = TensorMetadata(x.dtype, shape)
    value = x.value.reshape(meta.dims) if x.value is not None and meta.is_static else None
    return ValueInfo(meta, value, x.dims if shape is not None and len(shape) <= 1 else None, x.handle)
