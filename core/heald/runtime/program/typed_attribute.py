"""Typed attributes: numbers of types that Python lacks, and shapes whose dimensions are all known.

A program keeps them so that its text and its file have the types that their author wrote. Each is a number, or a tuple,
of Python. Kernels receive plain values (`plain_value`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...errors import InvalidArgument
from ..values import dtypes
from ..values.dtypes import DType

_PYTHON_DTYPES = {bool: dtypes.named("bool"), int: dtypes.named("int64"), float: dtypes.named("float64"),
                  complex: dtypes.named("complex128")}


class TypedNumber:
    """A number of an element type that no number of Python has. Python's own stand for bool, int64, float64 and
    complex128."""

    __slots__ = ()
    dtype: ClassVar[DType]


class ShapeAttribute(tuple[int, ...]):
    """A shape, all of whose dimensions are known: as a plain tuple it would be an array."""

    __slots__ = ()


def _class(name: str, base: type) -> type[Any]:
    return type(name, (TypedNumber, base), {"__slots__": (), "dtype": dtypes.named(name)})


_BASES = {**dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"), int),
          **dict.fromkeys(("float16", "bfloat16", "float32"), float), "complex64": complex}
_CLASSES = {dtypes.named(name): _class(name, base) for name, base in _BASES.items()} | {
    dtype: kind for kind, dtype in _PYTHON_DTYPES.items()}


def is_number(dtype: DType) -> bool:
    """Return True for a type that attributes may have."""
    return dtype in _CLASSES


def typed_number(value: Any, dtype: DType) -> Any:
    """A number as an attribute of a type. Raises InvalidArgument for an integer out of its range."""
    kind = _CLASSES[dtype]
    if issubclass(kind, int) and kind is not bool:
        bits = 8 * dtype.itemsize
        least = 0 if dtype.name.startswith("u") else -(1 << bits - 1)
        if not least <= value < least + (1 << bits):
            raise InvalidArgument(f"the attribute {value} is out of the range of {dtype.name}")
    return kind(value)


def number_type(value: Any) -> DType | None:
    """The type of a number; None for another value."""
    if isinstance(value, TypedNumber):
        return value.dtype
    for kind in (bool, int, float, complex):
        if isinstance(value, kind):
            return _PYTHON_DTYPES[kind]
    return None


def plain_value(value: Any) -> Any:
    """The value as kernels receive it."""
    if issubclass(type(value), TypedNumber):
        kind: Any = type(value).__bases__[1]
        return kind(value)
    if isinstance(value, tuple) and type(value) in (tuple, ShapeAttribute):
        return tuple(map(plain_value, value))
    return value
