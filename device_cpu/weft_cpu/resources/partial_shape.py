"""Shapes that are known in part: what lists and arrays of tensors say of their elements."""

from __future__ import annotations

from typing import TypeGuard

from weft.api import Bind, Shape, errors, merge_shapes


def shape_of(b: Bind, index: int) -> Shape:
    """The shape that an input says, which the op's metadata function reads too: lengths, -1 where one is unknown, or
    the scalar -1 where even the rank is."""
    value = b.inputs[index].value
    assert value is not None
    return tuple(None if n < 0 else int(n) for n in value) if value.ndim else None


def is_known(shape: Shape) -> TypeGuard[tuple[int, ...]]:
    """Whether nothing of the shape is open."""
    return shape is not None and None not in shape


def fits(shape: tuple[int, ...], partial: Shape) -> bool:
    """Whether a tensor of this shape has what is known."""
    if shape == partial or partial is None:
        return True
    return len(shape) == len(partial) and all(b is None or a == b for a, b in zip(shape, partial, strict=True))


def merged(a: Shape, b: Shape) -> Shape:
    """The most that both say. Raises InvalidArgument where they contradict."""
    try:
        return merge_shapes(a, b)
    except ValueError as error:
        raise errors.InvalidArgument(f"Incompatible shapes during merge: {error}") from None
