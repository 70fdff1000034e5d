"""Constants and arithmetic of single numbers, with the wrap-around of their types."""

from __future__ import annotations

import operator
from collections.abc import Callable
from struct import Struct, error
from typing import Any, TypeVar

from ..contract.host_kernel import HostKernels
from ..contract.host_type import F32, F64, I1, I32, I64
from ..errors import InvalidArgument

N = TypeVar("N")
_FLOAT = Struct("f")
INTEGERS = {"i32": I32, "i64": I64}
FLOATS = {"f32": F32, "f64": F64}


def wrapped(bits: int) -> Callable[[int], int]:
    """Return a function that wraps integers to two's complement of `bits` bits, as C does."""
    half, full = 1 << (bits - 1), 1 << bits
    return lambda value: (value + half) % full - half


def rounded(value: float) -> float:
    """Round to the nearest 32-bit float; values beyond its range become infinity."""
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except (OverflowError, error):
        return float("inf") if value > 0 else float("-inf")


INTO: dict[str, Callable[[Any], Any]] = {"i32": wrapped(32), "i64": wrapped(64), "f32": rounded, "f64": float}


def register(kernels: HostKernels) -> None:
    for name, kind in {"i1": I1, **INTEGERS, **FLOATS}.items():
        kernels.kernel(f"tfrt.constant.{name}", N=kind)(constant)
    for name, kind in {**INTEGERS, **FLOATS}.items():
        kernels.kernel(f"tfrt.add.{name}", N=kind)(binary(operator.add, INTO[name]))
    for name, kind in FLOATS.items():
        kernels.kernel(f"tfrt.multiply.{name}", N=kind)(binary(operator.mul, INTO[name]))
        kernels.kernel(f"tfrt.minimum.{name}", N=kind)(binary(min, INTO[name]))
        kernels.kernel(f"tfrt.div.{name}", N=kind)(quotient(INTO[name]))
    kernels.kernel("tfrt.div.i32")(division)
    kernels.kernel("tfrt.equal.i32")(equal)
    kernels.kernel("tfrt.lessequal.i32")(less_or_equal)


def constant(*, value: N) -> N:
    """Return the attribute."""
    return value


def binary(function: Callable[[Any, Any], Any], into: Callable[[Any], Any]) -> Callable[..., Any]:
    def kernel(a: N, b: N) -> N:
        return into(function(a, b))  # type: ignore[no-any-return]

    return kernel


def quotient(into: Callable[[Any], Any]) -> Callable[..., Any]:
    def kernel(a: N, b: N) -> N:
        if b == 0:
            raise InvalidArgument("Divide by zero")
        return into(operator.truediv(a, b))  # type: ignore[no-any-return]

    return kernel


def division(a: I32, b: I32) -> tuple[I32, I32]:
    """Return quotient and remainder, truncated towards zero as in C."""
    if b == 0:
        raise InvalidArgument("Divide by zero")
    truncated = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return INTO["i32"](truncated), a - truncated * b


def equal(a: I32, b: I32) -> I1:
    return a == b


def less_or_equal(a: I32, b: I32) -> I1:
    return a <= b
