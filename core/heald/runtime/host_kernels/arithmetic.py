"""Constants and arithmetic of single numbers, with the wrap-around of their types."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import isfinite
from struct import Struct, error
from typing import Any, TypeVar

from ...errors import InvalidArgument
from ..contract.host_kernel import HostKernels
from ..contract.host_type import BF16, C64, C128, F16, F32, F64, I1, I32, I64, UI32, UI64, Chain

N = TypeVar("N")
_FLOAT = Struct("f")
INTEGERS = {"i32": I32, "i64": I64}
FLOATS = {"f32": F32, "f64": F64}
CONSTANT_TYPES = {"i1": I1, **INTEGERS, "ui32": UI32, "ui64": UI64, "f16": F16, "bf16": BF16, **FLOATS,
                  "complex64": C64, "complex128": C128}
PLAIN_SYNTAX, VALUE_SYNTAX = "operands attr-dict", "$value attr-dict"  # syntax of most kernels, and of constants
_TYPES_WITH_SYNTAX = ("i1", "i32", "i64", "ui32", "f32", "f64")  # constants with a syntax
_LOW_BITS = 10  # a 64-bit integer without its lowest bits fits a 64-bit float


def twos_complement(bits: int) -> Callable[[int], int]:
    """Return a function that wraps integers to two's complement of `bits` bits, as C does."""
    half, full = 1 << (bits - 1), 1 << bits
    return lambda value: (value + half) % full - half


def round_to_f32(value: float) -> float:
    """Round to the nearest 32-bit float; values beyond its range become infinity."""
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except (OverflowError, error):
        return float("inf") if value > 0 else float("-inf")


FLOAT_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"f32": round_to_f32, "f64": float}
_into_i32 = twos_complement(32)


def register(kernels: HostKernels) -> None:
    for name, kind in CONSTANT_TYPES.items():
        syntax = VALUE_SYNTAX if name in _TYPES_WITH_SYNTAX else None
        kernels.kernel(f"tfrt.constant.{name}", N=kind, syntax=syntax)(rounded_constant if name == "f32" else constant)
    for name, kind in INTEGERS.items():
        kernels.kernel(f"tfrt.add.{name}", N=kind, syntax=PLAIN_SYNTAX)(integer_sum(int(name[1:])))
    for name, kind in FLOATS.items():
        kernels.kernel(f"tfrt.add.{name}", N=kind, syntax=PLAIN_SYNTAX)(binary(operator.add, FLOAT_CONVERSIONS[name]))
        kernels.kernel(f"tfrt.multiply.{name}", N=kind)(binary(operator.mul, FLOAT_CONVERSIONS[name]))
        kernels.kernel(f"tfrt.minimum.{name}", N=kind)(binary(min, FLOAT_CONVERSIONS[name]))
        kernels.kernel(f"tfrt.div.{name}", N=kind)(quotient(FLOAT_CONVERSIONS[name]))
    kernels.kernel("tfrt.div.i32", syntax=PLAIN_SYNTAX)(division)
    kernels.kernel("tfrt.equal.i32", syntax=PLAIN_SYNTAX)(equal)
    kernels.kernel("tfrt.lessequal.i32")(less_or_equal)
    kernels.kernel("tfrt.cast.i64_to_f32", syntax=PLAIN_SYNTAX)(i64_to_f32)
    kernels.kernel("tfrt.cast.i64_to_f64", syntax=PLAIN_SYNTAX)(i64_to_f64)
    kernels.kernel("tfrt.cast.f32_to_i64", N=F32, syntax=PLAIN_SYNTAX)(to_i64)
    kernels.kernel("tfrt.cast.f64_to_i64", N=F64, syntax=PLAIN_SYNTAX)(to_i64)


def constant(*, value: N) -> N:
    """Return the attribute."""
    return value


def rounded_constant(*, value: F32) -> F32:
    """Return the attribute as a 32-bit float: programs may hold more digits."""
    return round_to_f32(value)


def binary(function: Callable[[Any, Any], Any], into: Callable[[Any], Any]) -> Callable[..., Any]:
    def kernel(a: N, b: N) -> N:
        return into(function(a, b))  # type: ignore[no-any-return]

    return kernel


def integer_sum(bits: int) -> Callable[..., Any]:
    wrap, least, greatest = twos_complement(bits), -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def kernel(a: N, b: N) -> N:
        total: Any = a + b  # type: ignore[operator]
        return total if least <= total <= greatest else wrap(total)  # type: ignore[return-value]

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
    return _into_i32(truncated), a - truncated * b


def equal(a: I32, b: I32) -> I1:
    return a == b


def less_or_equal(a: I32, b: I32, *chain: Chain) -> I1:  # noqa: ARG001 - the chain orders the call
    return a <= b


def i64_to_f32(value: I64) -> F32:
    """Return the nearest 32-bit float. (Rounding to a 64-bit float on the way would round twice.)"""
    # the last bit tells of all that are left out
    rounded_bits = (value >> _LOW_BITS) | (value & ((1 << _LOW_BITS) - 1) != 0)
    return round_to_f32(float(value) if abs(value) < 1 << 53 else float(rounded_bits) * (1 << _LOW_BITS))


def i64_to_f64(value: I64) -> F64:
    return float(value)


def to_i64(value: N) -> I64:
    """Truncate towards zero, as C does. Values beyond the type become -2**63, as on x86-64; C leaves them open."""
    number: Any = value
    if isfinite(number) and -(2**63) <= number < 2**63:
        return int(number)
    return -(2**63)
