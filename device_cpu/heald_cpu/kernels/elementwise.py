"""Kernels that work element by element: most are NumPy's under another name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, CooTensor, Kernels, ScalarTensor, geometry

from ..element_types import COMPLEX, FLOATS, NARROW, NUMBERS, REAL, SIGNED, Array, attribute, through_float32

Function = Callable[..., Any]  # of inputs and output


def maximum(x: Array, y: Array, out: Array) -> None:
    np.maximum(x, y, out=out)  # NumPy deprecates a positional `out` for maximum and minimum


def minimum(x: Array, y: Array, out: Array) -> None:
    np.minimum(x, y, out=out)


def squared_difference(x: Array, y: Array, out: Array) -> None:
    np.subtract(x, y, out)
    np.square(out, out)


def complex_squared_difference(x: Array, y: Array, out: Array) -> None:
    np.subtract(x, y, out)
    np.multiply(out, np.conjugate(out), out)


# op, function(*inputs, out), types; the output has the inputs' type
SAME_TYPE: tuple[tuple[str, Function, tuple[str, ...]], ...] = (
    ("Abs", np.absolute, SIGNED + FLOATS),
    ("Acos", np.arccos, FLOATS + COMPLEX),
    ("Acosh", np.arccosh, FLOATS + COMPLEX),
    ("Add", np.add, (*SIGNED, "uint8", *FLOATS, *COMPLEX, "string")),
    ("AddV2", np.add, NUMBERS),
    ("Asin", np.arcsin, FLOATS + COMPLEX),
    ("Asinh", np.arcsinh, FLOATS + COMPLEX),
    ("Atan", np.arctan, FLOATS + COMPLEX),
    ("Atan2", np.arctan2, FLOATS),
    ("Atanh", np.arctanh, FLOATS + COMPLEX),
    ("Ceil", np.ceil, FLOATS),
    ("Cos", np.cos, FLOATS + COMPLEX),
    ("Cosh", np.cosh, FLOATS + COMPLEX),
    ("Exp", np.exp, FLOATS + COMPLEX),
    ("Expm1", np.expm1, FLOATS + COMPLEX),
    ("Floor", np.floor, FLOATS),
    ("Log", np.log, FLOATS + COMPLEX),
    ("Log1p", np.log1p, FLOATS),
    ("Maximum", maximum, REAL),
    ("Minimum", minimum, REAL),
    ("Mul", np.multiply, NUMBERS),
    ("Neg", np.negative, SIGNED + FLOATS + COMPLEX),
    ("NextAfter", np.nextafter, ("float32", "float64")),
    ("RealDiv", np.divide, FLOATS + COMPLEX),
    ("Rint", np.rint, FLOATS),
    ("Round", np.rint, FLOATS),
    ("Sign", np.sign, SIGNED + FLOATS + COMPLEX),
    ("Sin", np.sin, FLOATS + COMPLEX),
    ("Sinh", np.sinh, FLOATS + COMPLEX),
    ("Sqrt", np.sqrt, FLOATS + COMPLEX),
    ("Square", np.square, NUMBERS),
    ("SquaredDifference", squared_difference, ("int32", "int64", *FLOATS)),
    ("SquaredDifference", complex_squared_difference, COMPLEX),
    ("Sub", np.subtract, NUMBERS),
    ("Tan", np.tan, FLOATS + COMPLEX),
    ("Tanh", np.tanh, FLOATS + COMPLEX),
)
LOGICAL = {"LogicalAnd": np.logical_and, "LogicalNot": np.logical_not, "LogicalOr": np.logical_or}
COMPARISON = {
    "Greater": np.greater, "GreaterEqual": np.greater_equal, "Less": np.less, "LessEqual": np.less_equal,
}
PREDICATES = {"IsFinite": np.isfinite, "IsInf": np.isinf, "IsNan": np.isnan}
EQUALITY = {"Equal": np.equal, "NotEqual": np.not_equal}
UPPER_BOUND = {"Relu": None, "Relu6": 6}


def reciprocal(one: Array) -> Function:
    return lambda x, out: np.divide(one, x, out)  # np.reciprocal of a complex 0 is no infinity


def rsqrt(one: Array) -> Function:
    def run(x: Array, out: Array) -> None:
        np.sqrt(x, out)
        np.divide(one, out, out)

    return run


def sigmoid(one: Array | float) -> Function:
    def run(x: Array, out: Array) -> None:
        np.negative(x, out)
        np.exp(out, out)
        np.add(out, one, out)
        np.divide(one, out, out)

    return run


def complex_sigmoid(one: Array) -> Function:
    half = one / 2

    def run(x: Array, out: Array) -> None:  # tanh(x / 2) does not overflow for large -x, as exp(-x) does
        np.multiply(x, half, out)
        np.tanh(out, out)
        np.add(out, one, out)
        np.multiply(out, half, out)

    return run


# op, maker of the function given 1, types
IN_STEPS: tuple[tuple[str, Callable[[Array], Function], tuple[str, ...]], ...] = (
    ("Inv", reciprocal, FLOATS + COMPLEX),
    ("Reciprocal", reciprocal, FLOATS + COMPLEX),
    ("Rsqrt", rsqrt, FLOATS + COMPLEX),
    ("Sigmoid", sigmoid, FLOATS),
    ("Sigmoid", complex_sigmoid, COMPLEX),
)


# operators that scalar tensors pass through: the inputs of the op, and its result
SCALAR = {1: {"x": "scalar", "y": "scalar"}, 2: {"x": "scalar", "y": "scalar", "z": "scalar"}}
OF_SCALARS = {"Abs": 1, "AddV2": 2, "Mul": 2, "Neg": 1, "RealDiv": 2, "Sqrt": 1, "Square": 1, "Sub": 2}
KEEPS_ZERO = ("Abs", "Neg", "Sign", "Sqrt", "Square")  # f(0) = 0, so a sparse tensor keeps its coordinates


def of_scalars(function: Function) -> Callable[[Bind], Callable[..., ScalarTensor]]:
    def bind(b: Bind) -> Callable[..., ScalarTensor]:
        meta = b.outputs[0]

        def run(*tensors: ScalarTensor) -> ScalarTensor:
            out = np.empty((), meta.dtype.numpy)
            function(*[tensor.value for tensor in tensors], out)
            return ScalarTensor(meta.dims, out)

        return run

    return bind


def of_sparse_values(function: Function) -> Callable[[Bind], Callable[[CooTensor], CooTensor]]:
    def run(x: CooTensor) -> CooTensor:
        out = np.empty_like(x.values)
        function(x.values, out)
        return CooTensor(x.shape, x.indices, out)

    return lambda _: run


def register_kernels(kernels: Kernels) -> None:
    for op, function, types in SAME_TYPE:
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(lambda _, function=function: function)
        if op in OF_SCALARS:
            kernels.kernel(op, dtypes={"T": types}, layouts=SCALAR[OF_SCALARS[op]])(of_scalars(function))
        if op in KEEPS_ZERO:
            kernels.kernel(op, dtypes={"T": types}, layouts={"x": "coo", "y": "coo"})(of_sparse_values(function))
    for op, function in LOGICAL.items():
        kernels.kernel(op, inplace={0: 0})(lambda _, function=function: function)
    for op, function in COMPARISON.items():
        kernels.kernel(op, dtypes={"T": REAL})(lambda _, function=function: function)
    for op, function in PREDICATES.items():
        kernels.kernel(op, dtypes={"T": FLOATS})(lambda _, function=function: function)
    for op, function in EQUALITY.items():
        kernels.kernel(op, dtypes={"T": (*NUMBERS, "bool", "string")})(equality(function))
    for op, upper in UPPER_BOUND.items():
        kernels.kernel(op, dtypes={"T": REAL}, inplace={0: 0})(clip_from_zero(upper))
    for op, make, types in IN_STEPS:
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(in_steps(make))
    kernels.kernel("Round", dtypes={"T": ("int32", "int64")}, inplace={0: 0})(lambda _: zero)
    kernels.kernel("ApproximateEqual", dtypes={"T": REAL})(approximate_equal)
    kernels.kernel("ClipByValue", dtypes={"T": REAL}, inplace={0: 0})(clip_by_value)
    kernels.kernel("ClipByValue", dtypes={"T": COMPLEX}, inplace={0: 0})(clip_complex)


def equality(function: np.ufunc) -> Callable[[Bind], Function]:
    unequal = function is np.not_equal  # the result for shapes that do not broadcast

    def bind(b: Bind) -> Function:
        if geometry.shapes_fit(b.inputs[0].shape, b.inputs[1].shape):
            return function
        return lambda _x, _y, out: out.fill(unequal)

    return bind


def clip_from_zero(upper: float | None) -> Callable[[Bind], Function]:
    """Clips between 0 and a bound. NaN stays NaN. Of NumPy's functions clip is the fastest by far on large arrays."""

    def bind(b: Bind) -> Function:
        dtype = b.outputs[0].dtype
        largest = np.iinfo(dtype.numpy).max if dtype.kind in "iu" else np.inf
        low, high = np.zeros((), dtype.numpy), np.array(largest if upper is None else upper, dtype.numpy)
        return lambda x, out: x.clip(low, high, out)

    return bind


def in_steps(make: Callable[[Array], Function]) -> Callable[[Bind], Function]:
    def bind(b: Bind) -> Function:
        dtype = b.outputs[0].dtype
        if dtype.name in NARROW:
            return through_float32(make(np.ones((), np.float32)))
        return make(np.ones((), dtype.numpy))

    return bind


def zero(_: Array, out: Array) -> None:
    """Round of integers: 0, as TensorFlow's CPU kernel rounds every integer."""
    out.fill(0)


def approximate_equal(b: Bind) -> Function:
    tolerance = attribute(b, "tolerance", b.inputs[0].dtype)
    return lambda x, y, out: np.less_equal(np.absolute(x - y), tolerance, out)


def clip_by_value(b: Bind) -> Function:
    """ClipByValue. The lower bound wins if it is above the upper one. A bound that is NaN has no effect."""
    if b.outputs[0].dtype.kind != "f":
        return _clip
    infinity = np.array(np.inf, b.outputs[0].dtype.numpy)
    return lambda x, low, high, out: _clip(x, np.fmax(low, -infinity), np.fmin(high, infinity), out)


def _clip(x: Array, low: Array, high: Array, out: Array) -> None:
    x.clip(low, np.maximum(low, high), out)  # in one pass; NumPy lets the upper bound win


def clip_complex(_: Bind) -> Function:
    """ClipByValue of complex numbers: clips real and imaginary parts each to the bounds' parts."""

    def run(x: Array, low: Array, high: Array, out: Array) -> None:
        _clip(x.real, low.real, high.real, out.real)
        _clip(x.imag, low.imag, high.imag, out.imag)

    return run
