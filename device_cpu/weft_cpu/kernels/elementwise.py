"""Kernels that work element by element: most are NumPy's under another name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from weft.api import Bind, Kernels, geometry

from .element_types import COMPLEX, FLOATS, NARROW, NUMBERS, REAL, SIGNED, Array, widened

Function = Callable[..., Any]  # of inputs and output


def maximum(x: Array, y: Array, out: Array) -> None:
    np.maximum(x, y, out=out)  # NumPy deprecates a third position for these two


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
    ("Add", np.add, (*SIGNED, "uint8", *FLOATS, *COMPLEX, "string")),
    ("AddV2", np.add, NUMBERS),
    ("Exp", np.exp, FLOATS + COMPLEX),
    ("Floor", np.floor, FLOATS),
    ("Log", np.log, FLOATS + COMPLEX),
    ("Maximum", maximum, REAL),
    ("Minimum", minimum, REAL),
    ("Mul", np.multiply, NUMBERS),
    ("Neg", np.negative, SIGNED + FLOATS + COMPLEX),
    ("RealDiv", np.divide, FLOATS + COMPLEX),
    ("Sqrt", np.sqrt, FLOATS + COMPLEX),
    ("Square", np.square, NUMBERS),
    ("SquaredDifference", squared_difference, ("int32", "int64", *FLOATS)),
    ("SquaredDifference", complex_squared_difference, COMPLEX),
    ("Sub", np.subtract, NUMBERS),
    ("Tanh", np.tanh, FLOATS + COMPLEX),
)
LOGICAL = {"LogicalAnd": np.logical_and, "LogicalNot": np.logical_not, "LogicalOr": np.logical_or}
COMPARISON = {
    "Greater": np.greater, "GreaterEqual": np.greater_equal, "Less": np.less, "LessEqual": np.less_equal,
}
EQUALITY = {"Equal": np.equal, "NotEqual": np.not_equal}
UPPER_BOUND = {"Relu": None, "Relu6": 6}


def rsqrt(one: Array) -> Function:
    def run(x: Array, out: Array) -> None:
        np.sqrt(x, out)
        np.divide(one, out, out)

    return run


def sigmoid(one: Array) -> Function:
    def run(x: Array, out: Array) -> None:
        np.negative(x, out)
        np.exp(out, out)
        np.add(out, one, out)
        np.divide(one, out, out)

    return run


def complex_sigmoid(one: Array) -> Function:
    half = one / 2

    def run(x: Array, out: Array) -> None:  # where exp(-x) would overflow, tanh does not
        np.multiply(x, half, out)
        np.tanh(out, out)
        np.add(out, one, out)
        np.multiply(out, half, out)

    return run


# op, maker of the function given 1, types
IN_STEPS: tuple[tuple[str, Callable[[Array], Function], tuple[str, ...]], ...] = (
    ("Rsqrt", rsqrt, FLOATS + COMPLEX),
    ("Sigmoid", sigmoid, FLOATS),
    ("Sigmoid", complex_sigmoid, COMPLEX),
)


def register(kernels: Kernels) -> None:
    for op, function, types in SAME_TYPE:
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(lambda _, function=function: function)
    for op, function in LOGICAL.items():
        kernels.kernel(op, inplace={0: 0})(lambda _, function=function: function)
    for op, function in COMPARISON.items():
        kernels.kernel(op, dtypes={"T": REAL})(lambda _, function=function: function)
    for op, function in EQUALITY.items():
        kernels.kernel(op, dtypes={"T": (*NUMBERS, "bool", "string")})(equality(function))
    for op, upper in UPPER_BOUND.items():
        kernels.kernel(op, dtypes={"T": REAL}, inplace={0: 0})(bounded(upper))
    for op, make, types in IN_STEPS:
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(in_steps(make))


def equality(function: np.ufunc) -> Callable[[Bind], Function]:
    unequal = function is np.not_equal  # as a whole, of shapes that do not fit

    def bind(b: Bind) -> Function:
        if geometry.shapes_fit(b.inputs[0].shape, b.inputs[1].shape):
            return function
        return lambda _x, _y, out: out.fill(unequal)

    return bind


def bounded(upper: float | None) -> Callable[[Bind], Function]:
    """Between 0 and a bound. Of NumPy's ways clip is the fastest by far on large arrays; NaN stays NaN."""

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
            return widened(make(np.ones((), np.float32)))
        return make(np.ones((), dtype.numpy))

    return bind
