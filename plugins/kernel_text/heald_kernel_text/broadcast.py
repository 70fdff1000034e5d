"""Broadcasting in canonical form: as few dimensions as the operands allow, and the dimensions that each operand has."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from heald.api import geometry

Dims = tuple[int, ...]
Shape = tuple[int | None, ...] | None


class Broadcast(NamedTuple):
    """The output's lengths, and for each operand whether it has each dimension or is repeated along it."""

    lengths: Dims
    present: tuple[tuple[bool, ...], ...]


def broadcast_dims(shapes: Sequence[Dims]) -> Dims:
    """The shape that all of these fit into. Raises InvalidArgument where there is none."""
    common_shape: Shape = ()
    for shape in shapes:
        common_shape = geometry.broadcast_shapes(common_shape, shape)
    assert common_shape is not None
    return tuple(n for n in common_shape if n is not None)


def canonical(shapes: Sequence[Dims], output: Dims) -> Broadcast:
    """Merge neighbouring dimensions along which every operand behaves alike. At least one dimension is left."""
    columns = []  # length, and for each operand whether it has the dimension
    for axis, length in enumerate(output):
        back = len(output) - axis
        has = tuple(len(shape) >= back and shape[-back] == length for shape in shapes)
        if length != 1:
            columns.append((length, has))
    merged: list[tuple[int, tuple[bool, ...]]] = []
    for length, has in columns:
        if merged and merged[-1][1] == has:
            merged[-1] = (merged[-1][0] * length, has)
        else:
            merged.append((length, has))
    if not merged:
        merged = [(prod(output), (True,) * len(shapes))]
    lengths, present = zip(*merged, strict=True)
    return Broadcast(tuple(lengths), tuple(zip(*present, strict=True)))
