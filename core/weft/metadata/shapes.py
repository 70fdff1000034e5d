"""Checks on partly known shapes, with the words of their errors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..errors import InvalidArgument
from ..geometry import broadcast_shapes
from ..tensor import Shape, TensorMetadata, ValueInfo, merge_shapes, shape_text

Dims = tuple[int | None, ...]


def ranked(x: ValueInfo, rank: int, name: str) -> Dims:
    """The shape of an input that must have this rank; all of it unknown where the rank was."""
    if x.shape is None:
        return (None,) * rank
    if len(x.shape) != rank:
        raise InvalidArgument(f"{name} must have rank {rank}, given shape {shape_text(x.shape)}")
    return x.shape


def check_single(x: ValueInfo, name: str, *, most_rank: int = 0) -> None:
    """Raises InvalidArgument for an input of more than one element, or of none."""
    if x.rank is not None and (x.rank > most_rank or (x.meta.is_static and x.size != 1)):
        raise InvalidArgument(f"{name} must be a scalar, given shape {shape_text(x.shape)}")


def single(x: ValueInfo, name: str, *, most_rank: int = 0) -> int | None:
    """The element of an input that must hold just one integer; None while it is unknown."""
    check_single(x, name, most_rank=most_rank)
    known = x.vector()
    return known[0] if known else None


def amount(x: ValueInfo, name: str, *, least: int = 0) -> int | None:
    """As `single`, of an input that says how many of something there are: none, or one, at least."""
    known = single(x, name)
    if known is not None and known < least:
        raise InvalidArgument(f"{name} must be {'positive' if least else 'non-negative'}, got {known}")
    return known


def vector(x: ValueInfo, name: str) -> Dims | None:
    """The elements of an integer input that must be a vector; None where even its length is unknown."""
    (length,) = ranked(x, 1, name)
    known = x.vector()
    return known if known is not None or length is None else (None,) * length


def shape_in(x: ValueInfo, name: str) -> Dims | None:
    """The elements of a vector that is a shape, as `vector` knows them."""
    shape = vector(x, name)
    if any(length is not None and length < 0 for length in shape or ()):
        raise InvalidArgument(f"{name} must have no negative dimension: {shape_text(shape)}")
    return shape


def axis_in(axis: int, rank: int, name: str) -> int:
    """`axis` counted from 0; negative ones count from the end."""
    if not -rank <= axis < rank:
        raise InvalidArgument(f"{name} {axis} is not in [{-rank}, {rank})")
    return axis % rank


def same_dim(a: int | None, b: int | None, what: str) -> int | None:
    """The length that two dimensions must share."""
    if a is not None and b is not None and a != b:
        raise InvalidArgument(f"{what} must be equal, but are {a} and {b}")
    return b if a is None else a


def same_shape(shapes: Sequence[Shape], what: str) -> Shape:
    """The most that shapes say together which must be equal."""
    together: Shape = None
    for shape in shapes:
        try:
            together = merge_shapes(together, shape)
        except ValueError as error:
            raise InvalidArgument(f"{what}: {error}") from None
    return together


def broadcast_into(shape: Shape, target: Dims, what: str) -> Dims:
    """`target`, which a tensor of this shape must fit by broadcasting, and what more `shape` says of it."""
    if shape is None:
        return target
    if len(shape) > len(target):
        raise InvalidArgument(f"{what}: rank of input ({len(shape)}) must be no greater than rank of output shape "
                              f"({len(target)})")
    return same_shape((target, broadcast_shapes(shape, target)), what) or ()


def elements_in(shape: Shape) -> int | None:
    """How many elements a tensor of this shape has, where that is known."""
    if shape is None:
        return None
    if 0 in shape:
        return 0
    return None if None in shape else prod(d for d in shape if d is not None)


def view(x: ValueInfo, shape: Shape) -> ValueInfo:
    """The elements of `x` under another shape."""
    meta = TensorMetadata(x.dtype, shape)
    value = x.value.reshape(meta.dims) if x.value is not None and meta.is_static else None
    return ValueInfo(meta, value, x.dims if shape is not None and len(shape) <= 1 else None, x.handle)
