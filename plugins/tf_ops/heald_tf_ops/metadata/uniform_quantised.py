"""Metadata of ops of uniform quantisation: scales and zero points for all numbers, or along an axis."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, info

from .rules import rule
from .shapes import dims_of_rank, same_dim, same_shape


@rule("UniformDequantize", "UniformQuantize")
def quantize(attrs: Attrs, x: ValueInfo, scales: ValueInfo, zero_points: ValueInfo) -> ValueInfo:
    axis: int = attrs["quantization_axis"]
    if axis < -1 or (x.rank is not None and axis >= x.rank):
        raise InvalidArgument(f"quantization_axis must be -1 or in range [0, input.rank), but given {axis}")
    same_shape((scales.shape, zero_points.shape), "scales and zero_points must have the same shape")
    for parts, name in ((scales, "scales"), (zero_points, "zero_points")):
        dims = dims_of_rank(parts, int(axis != -1), name)
        if dims and x.shape is not None:
            same_dim(dims[0], x.shape[axis], f"the length of {name} and dimension {axis} of input")
    return info(attrs["Tout"], x.shape)
