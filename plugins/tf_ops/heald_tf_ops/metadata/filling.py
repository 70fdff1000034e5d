"""Metadata of ops that make a tensor from a few numbers: its shape, its ends, the positions of its ones."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, info

from .rules import rule
from .shapes import count_in, dims_of_rank, shape_in


@rule("Empty", values=("shape",))
def empty(attrs: Attrs, shape: ValueInfo) -> ValueInfo:
    return info(attrs["dtype"], shape_in(shape, "shape"))


@rule("OneHot", values=("depth",))
def one_hot(attrs: Attrs, indices: ValueInfo, depth: ValueInfo, on: ValueInfo, off: ValueInfo) -> ValueInfo:
    length, axis = count_in(depth, "depth"), attrs["axis"]
    dims_of_rank(on, 0, "on_value")
    dims_of_rank(off, 0, "off_value")
    if axis < -1:
        raise InvalidArgument(f"axis must be >= -1, given {axis}")
    if indices.shape is None:
        return info(on.dtype, None)
    if axis > len(indices.shape):
        raise InvalidArgument(f"Expected axis to be -1 or between [0, {len(indices.shape) + 1}), but received: {axis}")
    at = len(indices.shape) if axis == -1 else axis
    return info(on.dtype, (*indices.shape[:at], length, *indices.shape[at:]))


@rule("LinSpace", values=("num",))
def lin_space(_: Attrs, start: ValueInfo, stop: ValueInfo, num: ValueInfo) -> ValueInfo:
    dims_of_rank(start, 0, "start")
    dims_of_rank(stop, 0, "stop")
    return info(start.dtype, (count_in(num, "num", least=1),))
