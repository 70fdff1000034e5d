"""Metadata of matrix and vector products."""

from __future__ import annotations

from ..errors import InvalidArgument
from ..geometry import broadcast_shapes
from ..op import Attrs
from ..tensor import ValueInfo, info, shape_text
from .rules import rule
from .shapes import ranked, same_dim, same_shape


@rule("MatMul")
def matmul(attrs: Attrs, a: ValueInfo, b: ValueInfo) -> ValueInfo:
    rows, inner = ranked(a, 2, "a")[:: -1 if attrs["transpose_a"] else 1]
    other_inner, columns = ranked(b, 2, "b")[:: -1 if attrs["transpose_b"] else 1]
    same_dim(inner, other_inner, "the inner dimensions of a product")
    return info(a.dtype, (rows, columns))


@rule("BatchMatMulV2")
def batch_matmul(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    for operand in (x, y):
        if operand.rank is not None and operand.rank < 2:
            raise InvalidArgument(f"a batch of matrices has at least rank 2, given {shape_text(operand.shape)}")
    if x.shape is None or y.shape is None:
        return info(x.dtype, None)
    rows, inner = x.shape[-2:][:: -1 if attrs["adj_x"] else 1]
    other_inner, columns = y.shape[-2:][:: -1 if attrs["adj_y"] else 1]
    same_dim(inner, other_inner, "the inner dimensions of a product")
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return info(x.dtype, None if batch is None else (*batch, rows, columns))


@rule("Cross")
def cross(_: Attrs, a: ValueInfo, b: ValueInfo) -> ValueInfo:
    shape = same_shape((a.shape, b.shape), "both inputs must be of same shape")
    if shape is None:
        return info(a.dtype, None)
    if not shape:
        raise InvalidArgument("input must be at least 1D, given shape []")
    same_dim(shape[-1], 3, "the innermost dimension of cross products and 3")
    return info(a.dtype, shape)
