"""Host types: the types of registers that hold no tensors.

A program names them, and the declaration of a host kernel annotates its parameters with them.

    def div(a: I32, b: I32) -> tuple[I32, I32]: ...

Such an annotation is a Python type for type checkers and a HostType for heald. A plugin declares its own: `Coordinate =
Annotated[Point, HostType("!my.coordinate")]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any

from ..support.records import dataclass


def _anything(_payload: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class HostType:
    """A type by its name in programs. `accepts(payload)` tells if a payload is of this type. It is called in debug
    mode, and for the arguments and attributes that users pass to a program.

    An attribute of a `typed` host type keeps the types of its numbers: an i32 is no i64. Others become Python's."""

    name: str
    accepts: Callable[[Any], bool] = field(default=_anything, compare=False, repr=False)
    typed: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


def _integer(bits: int) -> Callable[[Any], bool]:
    limit = 1 << (bits - 1)
    return lambda payload: isinstance(payload, int) and not isinstance(payload, bool) and -limit <= payload < limit


def _natural(bits: int) -> Callable[[Any], bool]:
    return lambda payload: isinstance(payload, int) and not isinstance(payload, bool) and 0 <= payload < 1 << bits


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda payload: isinstance(payload, kind)


I1 = Annotated[bool, HostType("i1", _is(bool))]  # a truth value of a host program
I32 = Annotated[int, HostType("i32", _integer(32))]  # an integer of 32 bits of a host program
I64 = Annotated[int, HostType("i64", _integer(64))]  # an integer of 64 bits of a host program
F32 = Annotated[float, HostType("f32", _is(float))]  # a float32 of a host program
F64 = Annotated[float, HostType("f64", _is(float))]  # a float64 of a host program
UI32 = Annotated[int, HostType("ui32", _natural(32))]
UI64 = Annotated[int, HostType("ui64", _natural(64))]
F16 = Annotated[float, HostType("f16", _is(float))]
BF16 = Annotated[float, HostType("bf16", _is(float))]
C64 = Annotated[complex, HostType("complex<f32>", _is(complex))]
C128 = Annotated[complex, HostType("complex<f64>", _is(complex))]
String = Annotated[str, HostType("!tfrt.string", _is(str))]  # a text of a host program
CHAIN = "!tfrt.chain"
Chain = Annotated[None, HostType(CHAIN, lambda payload: payload is None)]  # a value that orders effects
TENSOR = HostType("tensor")  # the type of every register that has a TensorMetadata
Tensor = Annotated[Any, TENSOR]  # a tensor of a host program

BUILT_IN_HINTS: tuple[Any, ...] = (I1, I32, I64, UI32, UI64, F16, BF16, F32, F64, C64, C128, String, Chain)
TYPE_OF_NAME: dict[str, HostType] = {hint.__metadata__[0].name: hint.__metadata__[0] for hint in BUILT_IN_HINTS}
