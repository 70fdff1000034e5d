"""Division, remainders and powers, which integers do not always have, and products in which a 0 decides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import COMPLEX, FLOATS, INTEGERS, SIGNED, UNSIGNED, Array
from .complex_numbers import log1p as complex_log1p
from .staging import nothing

Run = Callable[..., object]  # of x, y and out


def register_kernels(kernels: Kernels) -> None:
    for op, function, types in OF_FLOATS:
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(lambda _, function=function: function)
    for op, function, types in OF_INTEGERS:
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(unless_empty(with_division_check(function)))
    for op, function, position, types in ZERO_DECIDES:
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(zero_where_zero(function, position))
    kernels.kernel("Pow", dtypes={"T": SIGNED}, inplace={0: 0})(unless_empty(integer_power))


def unless_empty(run: Run) -> Callable[[Bind], Run]:
    """The bind function of `run`, which is skipped for an empty output: its divisor may be 0."""
    return lambda b: nothing if b.outputs[0].size == 0 else run


def with_division_check(function: Run) -> Run:
    def run(x: Array, y: Array, out: Array) -> None:
        if not y.all():
            raise errors.InvalidArgument("Integer division by zero")
        function(x, y, out)

    return run


def integer_power(x: Array, y: Array, out: Array) -> None:
    if y.min() < 0:
        raise errors.InvalidArgument("Integers to negative integer powers are not allowed")
    np.power(x, y, out)


def zero_where_zero(function: Run, position: int) -> Callable[[Bind], Run]:
    """`function`, but 0 where the input at `position` is 0, for every value of the other input."""

    def run(x: Array, y: Array, out: Array) -> None:
        zero = (x, y)[position] == 0
        function(x, y, out)
        out[np.broadcast_to(zero, out.shape)] = 0

    return lambda _: run


def floor_divide(x: Array, y: Array, out: Array) -> None:
    """The floor of the rounded quotient, as in TensorFlow. np.floor_divide is exact: 1 // 0.1 is 9 there."""
    np.divide(x, y, out)
    np.floor(out, out)


def truncate_divide(x: Array, y: Array, out: Array) -> None:
    np.divide(x, y, out)
    np.trunc(out, out)


def floor_mod(x: Array, y: Array, out: Array) -> None:
    """As np.mod, but a result of 0 keeps the sign of `x`. `out` may be `x`."""
    negative = np.broadcast_to(np.signbit(x), out.shape)
    np.mod(x, y, out)
    zero = out == 0
    out[zero] = np.where(negative[zero], -0.0, 0.0)


def truncate_divide_signed(x: Array, y: Array, out: Array) -> None:
    np.floor_divide(x - np.fmod(x, y), y, out)


def xlogy(x: Array, y: Array, out: Array) -> None:
    np.multiply(x, np.log(y), out)


def xlog1py(x: Array, y: Array, out: Array) -> None:
    np.multiply(x, np.log1p(y), out)


def complex_xlog1py(x: Array, y: Array, out: Array) -> None:
    logarithm = np.empty_like(y)
    complex_log1p(y, logarithm)
    np.multiply(x, logarithm, out)


# op, function(x, y, out), types
OF_FLOATS: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
    ("Div", np.divide, FLOATS + COMPLEX),
    ("FloorDiv", floor_divide, FLOATS),
    ("FloorMod", floor_mod, FLOATS),
    ("Mod", np.fmod, FLOATS),
    ("Pow", np.power, FLOATS + COMPLEX),
    ("TruncateDiv", truncate_divide, FLOATS),
    ("TruncateMod", np.fmod, FLOATS),
)
OF_INTEGERS: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
    ("Div", truncate_divide_signed, SIGNED),
    ("Div", np.floor_divide, UNSIGNED),
    ("FloorDiv", np.floor_divide, INTEGERS),
    ("FloorMod", np.remainder, INTEGERS),
    ("Mod", np.fmod, INTEGERS),
    ("TruncateDiv", truncate_divide_signed, SIGNED),
    ("TruncateDiv", np.floor_divide, UNSIGNED),
    ("TruncateMod", np.fmod, INTEGERS),
)
# op, function(x, y, out), the input that decides, types
ZERO_DECIDES: tuple[tuple[str, Run, int, tuple[str, ...]], ...] = (
    ("DivNoNan", np.divide, 1, FLOATS + COMPLEX),
    ("MulNoNan", np.multiply, 1, FLOATS + COMPLEX),
    ("Xdivy", np.divide, 0, FLOATS + COMPLEX),
    ("Xlog1py", xlog1py, 0, FLOATS),
    ("Xlog1py", complex_xlog1py, 0, COMPLEX),
    ("Xlogy", xlogy, 0, FLOATS + COMPLEX),
)
