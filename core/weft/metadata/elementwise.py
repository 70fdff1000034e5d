"""Metadata of ops that work element by element: one, or two that broadcast."""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..geometry import broadcast_shapes, shapes_fit
from ..op import Attrs, MetadataFunction
from ..tensor import Shape, TensorMetadata, ValueInfo, info
from .rules import rule
from .values import fold

FOLDING = {
    "Add": np.add, "AddV2": np.add, "Maximum": np.maximum, "Minimum": np.minimum, "Mul": np.multiply,
    "Sub": np.subtract,
}


@rule(
    "Abs", "Exp", "Floor", "Log", "LogicalNot", "Neg", "Relu", "Relu6", "Rsqrt", "Sigmoid", "Sqrt", "Square",
    "Tanh",
)
def unary(_: Attrs, x: ValueInfo) -> ValueInfo:
    return ValueInfo(x.meta)


@rule("LogicalAnd", "LogicalOr", "RealDiv", "SquaredDifference")
def binary(_: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    return info(x.dtype, broadcast_shapes(x.shape, y.shape))


def folding(ufunc: np.ufunc) -> MetadataFunction:
    """The metadata function of a binary op that shapes are computed with."""

    def metadata(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
        return fold(ufunc, np.logical_and, binary(attrs, x, y).meta, x, y)

    return metadata


for _op, _ufunc in FOLDING.items():
    rule(_op)(folding(_ufunc))


@rule("Greater", "GreaterEqual", "Less", "LessEqual")
def comparison(_: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    return info(dtypes.bool_, broadcast_shapes(x.shape, y.shape))


@rule("Equal", "NotEqual")
def equality(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    if attrs["incompatible_shape_error"]:
        return comparison(attrs, x, y)
    return info(dtypes.bool_, _equality_shape(x.shape, y.shape))


def _equality_shape(a: Shape, b: Shape) -> Shape:
    """Tensors of shapes that do not fit are unequal as a whole: then the output is a scalar."""
    if not shapes_fit(a, b):
        return ()
    lengths = zip(reversed(a or ()), reversed(b or ()), strict=False)
    if any(None in pair and 1 not in pair for pair in lengths):
        return None
    return broadcast_shapes(a, b)


@rule("Cast")
def cast(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    meta = TensorMetadata(attrs["DstT"], x.shape)
    return fold(lambda v: v.astype(np.int64).astype(meta.dtype.numpy), lambda known: known, meta, x)
