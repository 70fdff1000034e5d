"""Metadata of elementwise ops: on one tensor, or on two that broadcast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from heald.api import (
    Attrs,
    InvalidArgument,
    MetadataFunction,
    Shape,
    TensorMetadata,
    ValueInfo,
    dtypes,
    geometry,
    info,
    shape_text,
)

from .rules import rule
from .shapes import dims_of_rank, elements_in, same_shape
from .values import Array, fold

FOLDING = {
    "Add": np.add, "AddV2": np.add, "Maximum": np.maximum, "Minimum": np.minimum, "Mul": np.multiply,
    "Sub": np.subtract,
}


@rule(
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
    "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Ceil",
    "CheckNumerics", "Conj", "Cos", "Cosh", "Dawsn", "Digamma", "Elu", "Erf", "Erfc", "Erfinv", "Exp", "Expint",
    "Expm1", "Floor", "FresnelCos", "FresnelSin", "Inv", "Invert", "LeakyRelu", "Lgamma", "Log", "Log1p", "LogicalNot",
    "Ndtri", "Neg", "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softplus", "Softsign", "Spence", "Sqrt", "Square", "Tan", "Tanh",
)
def unary(_: Attrs, x: ValueInfo) -> ValueInfo:
    return ValueInfo(x.meta)


@rule(
    "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "DivNoNan", "Igamma", "IgammaGradA", "Igammac", "LeftShift",
    "LogicalAnd", "LogicalOr", "MulNoNan", "NextAfter", "Polygamma", "Pow", "RandomGammaGrad", "RealDiv", "RightShift",
    "SquaredDifference", "Xdivy", "Xlog1py", "Xlogy", "Zeta",
)
def binary(_: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    return info(x.dtype, geometry.broadcast_shapes(x.shape, y.shape))


@rule("Betainc")
def betainc(_: Attrs, *inputs: ValueInfo) -> ValueInfo:
    """Inputs have one shape, or are scalars."""
    shape = same_shape([x.shape for x in inputs if x.rank != 0], "a, b and x must have the same shape")
    return info(inputs[0].dtype, () if all(x.rank == 0 for x in inputs) else shape)


def folding(ufunc: np.ufunc) -> MetadataFunction:
    """Return the metadata function of a binary op that occurs in shape computations."""

    def metadata(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
        return fold(ufunc, np.logical_and, binary(attrs, x, y).meta, x, y)

    return metadata


for _op, _ufunc in FOLDING.items():
    rule(_op)(folding(_ufunc))


def dividing(ufunc: Callable[..., Array]) -> MetadataFunction:
    """Like `folding`, for a division. A division by zero is not folded: the kernel refuses it."""

    def quotient(x: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):  # the least integer divided by -1
            return ufunc(x, np.where(y == 0, 1, y).astype(y.dtype))

    def metadata(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
        meta = binary(attrs, x, y).meta
        if y.dtype.kind in "iu" and _has_zero(y):
            return ValueInfo(meta)
        return fold(quotient, np.logical_and, meta, x, y)

    return metadata


def _has_zero(x: ValueInfo) -> bool:
    """Return True if an element is known to be 0."""
    elements = x.distinct()
    return not elements.all() if elements is not None else 0 in (x.dims or ())


def _truncated_quotient(x: Array, y: Array) -> Array:
    return (x - np.fmod(x, y)) // y


DIVIDING: dict[str, Callable[..., Array]] = {
    "Div": _truncated_quotient, "FloorDiv": np.floor_divide, "FloorMod": np.remainder, "Mod": np.fmod,
    "TruncateDiv": _truncated_quotient, "TruncateMod": np.fmod,
}
for _op, _division in DIVIDING.items():
    rule(_op)(dividing(_division))


@rule("IsFinite", "IsInf", "IsNan")
def predicate(_: Attrs, x: ValueInfo) -> ValueInfo:
    return info(dtypes.bool_, x.shape)


@rule("PopulationCount")
def population_count(_: Attrs, x: ValueInfo) -> ValueInfo:
    return info(dtypes.uint8, x.shape)


@rule("Angle", "ComplexAbs", "Imag", "Real")
def part(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return info(attrs["Tout"], x.shape)


@rule("Complex")
def complex_(attrs: Attrs, real: ValueInfo, imag: ValueInfo) -> ValueInfo:
    return info(attrs["Tout"], geometry.broadcast_shapes(real.shape, imag.shape))


@rule("AddN")
def add_n(_: Attrs, *xs: ValueInfo) -> ValueInfo:
    shape = same_shape([x.shape for x in xs], "inputs must have the same shape")
    if xs[0].dtype is not dtypes.variant:
        return info(xs[0].dtype, shape)
    for x in xs:
        dims_of_rank(x, 0, "AddN's variant")
    return ValueInfo(TensorMetadata(dtypes.variant, ()), handle=_common_handle(xs))


def _common_handle(xs: tuple[ValueInfo, ...]) -> tuple[TensorMetadata, ...] | None:
    """Return the element metadata common to the added variants, if every handle has it."""
    handles = [x.handle for x in xs if x.handle and len(x.handle) == 1]
    if len(handles) != len(xs):
        return None
    metas = [handle[0] for handle in handles]
    if len({meta.dtype for meta in metas}) > 1:
        raise InvalidArgument(f"what is added holds different types: {', '.join(meta.dtype.name for meta in metas)}")
    shape = same_shape([meta.shape for meta in metas], "what is added must hold tensors of one shape")
    return (TensorMetadata(metas[0].dtype, shape),)


@rule("AccumulateNV2")
def accumulate_n(attrs: Attrs, *xs: ValueInfo) -> ValueInfo:
    shapes = (attrs["shape"], *(x.shape for x in xs))
    return info(xs[0].dtype, same_shape(shapes, "inputs must have the shape that the attribute says"))


@rule("EluGrad", "LeakyReluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad")
def activation_gradient(_: Attrs, dy: ValueInfo, x: ValueInfo) -> ValueInfo:
    return info(dy.dtype, same_shape((dy.shape, x.shape), "the gradient must have the shape of the features"))


@rule("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")
def gradient(_: Attrs, y: ValueInfo, dy: ValueInfo) -> ValueInfo:
    sizes = elements_in(y.shape), elements_in(dy.shape)
    if None not in sizes and sizes[0] != sizes[1]:
        raise InvalidArgument("The two arguments to a cwise op must have same number of elements, got "
                              f"{shape_text(y.shape)} and {shape_text(dy.shape)}")
    return ValueInfo(y.meta)


@rule("ApproximateEqual")
def approximate_equal(_: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    return info(dtypes.bool_, same_shape((x.shape, y.shape), "x and y must be of the same shape"))


@rule("ClipByValue")
def clip_by_value(_: Attrs, x: ValueInfo, low: ValueInfo, high: ValueInfo) -> ValueInfo:
    for name, bound in (("clip_value_min", low), ("clip_value_max", high)):
        if bound.rank != 0:
            same_shape((x.shape, bound.shape), f"{name} must be a scalar or of the input's shape")
    return ValueInfo(x.meta)


@rule("Greater", "GreaterEqual", "Less", "LessEqual")
def comparison(_: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    return info(dtypes.bool_, geometry.broadcast_shapes(x.shape, y.shape))


@rule("Equal", "NotEqual")
def equality(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> ValueInfo:
    if attrs["incompatible_shape_error"]:
        return comparison(attrs, x, y)
    return info(dtypes.bool_, _equality_shape(x.shape, y.shape))


def _equality_shape(a: Shape, b: Shape) -> Shape:
    """Shapes that do not fit make tensors unequal as a whole: the output is a scalar."""
    if not geometry.shapes_fit(a, b):
        return ()
    lengths = zip(reversed(a or ()), reversed(b or ()), strict=False)
    if any(None in pair and 1 not in pair for pair in lengths):
        return None
    return geometry.broadcast_shapes(a, b)


@rule("Cast")
def cast(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    meta = TensorMetadata(attrs["DstT"], x.shape)
    return fold(lambda v: v.astype(np.int64).astype(meta.dtype.numpy), lambda mask: mask, meta, x)
