"""Partially known shapes: the element shapes of TensorLists, TensorArrays and queues."""

from __future__ import annotations

from typing import TypeGuard

from heald.api import Bind, Shape, errors, merge_shapes


def shape_of(b: Bind, index: int) -> Shape:
    """The shape that an input holds: sizes, -1 for an unknown size, the scalar -1 for an unknown rank. The
    op's metadata function reads this input too, so the value is known."""
    value = b.inputs[index].value
    assert value is not None
    return tuple(None if n < 0 else int(n) for n in value) if value.ndim else None


def is_known(shape: Shape) -> TypeGuard[tuple[int, ...]]:
    """True for a fully known shape."""
    return shape is not None and None not in shape


def fits(shape: tuple[int, ...], partial: Shape) -> bool:
    """True where the shape agrees with the partial one."""
    if shape == partial or partial is None:
        return True
    return len(shape) == len(partial) and all(b is None or a == b for a, b in zip(shape, partial, strict=True))


def agreed_shape(a: Shape, b: Shape) -> Shape:
    """The shape that both agree with. Raises InvalidArgument where they contradict."""
    try:
        return merge_shapes(a, b)
    except ValueError as error:
        raise errors.InvalidArgument(f"Incompatible shapes during merge: {error}") from None
