"""Element types in kernel text: C types in memory and in registers, load and store, literals and limits."""

from __future__ import annotations

from math import inf, isinf, isnan
from struct import pack, unpack
from typing import NamedTuple

from heald.api import DType, dtypes

from .tree import Group, Number, Tree, TypeName, Word


class Element(NamedTuple):
    """The C names of a type in memory and in registers. Two-byte floats are computed in float32."""

    memory_type: str
    register_type: str
    unsigned: str = ""  # integer arithmetic wraps around in this type: signed overflow is undefined
    load: str = "{p}[{i}]"
    store: str = "{p}[{i}] = {v}"


ELEMENTS: dict[DType, Element] = {
    dtypes.float64: Element("f64", "f64"),
    dtypes.float32: Element("f32", "f32"),
    dtypes.float16: Element("f16", "f32", load="LOAD_F16({p}, {i})", store="STORE_F16({p}, {i}, {v})"),
    dtypes.bfloat16: Element("u16", "f32", load="LOAD_BF16({p}, {i})", store="STORE_BF16({p}, {i}, {v})"),
    dtypes.int8: Element("i8", "i8", "u32"),
    dtypes.int16: Element("i16", "i16", "u32"),
    dtypes.int32: Element("i32", "i32", "u32"),
    dtypes.int64: Element("i64", "i64", "u64"),
    dtypes.uint8: Element("u8", "u8", "u32"),
    dtypes.uint16: Element("u16", "u16", "u32"),
    dtypes.uint32: Element("u32", "u32", "u32"),
    dtypes.uint64: Element("u64", "u64", "u64"),
    dtypes.bool_: Element("u8", "u8", "u32"),
}

LARGEST_FINITE = {dtypes.float16: 65504.0, dtypes.bfloat16: 3.3895313892515355e38,
                  dtypes.float32: 3.4028234663852886e38, dtypes.float64: 1.7976931348623157e308}


def load(dtype: DType, pointer: str, index: str) -> str:
    return ELEMENTS[dtype].load.format(p=pointer, i=index)


def store(dtype: DType, pointer: str, index: str, value: str) -> str:
    return ELEMENTS[dtype].store.format(p=pointer, i=index, v=value) + ";"


def register_type(dtype: DType) -> str:
    return ELEMENTS[dtype].register_type


def memory_type(dtype: DType) -> str:
    return ELEMENTS[dtype].memory_type


def number_tree(value: float | int | bool, dtype: DType) -> Tree:
    """A number, rounded to the type in registers and converted to it. Floats are hexadecimal, which is exact."""
    convert = TypeName(register_type(dtype))
    infinity = Word("POSITIVE_INFINITY")
    if dtype.kind != "f":
        number = int(value)  # a decimal literal is signed, a hexadecimal one need not be; suffixes differ by dialect
        return convert(number if abs(number) < 1 << 63 else Number(abs(number), hexadecimal=True))
    if isnan(value):
        return convert(infinity - infinity)
    if convert == "f32" and abs(value) <= LARGEST_FINITE[dtypes.float32]:
        (value,) = unpack("f", pack("f", value))
    elif convert == "f32" or isinf(value):
        return convert(Group(-infinity if value < 0 else infinity))
    return convert(Number(float(value), "" if convert == "f64" else "f", hexadecimal=True))


def limits(dtype: DType) -> tuple[float | int, float | int]:
    """The initial accumulators of a maximum and of a minimum."""
    if dtype.kind == "f":
        return -inf, inf
    if dtype.kind == "b":
        return 0, 1
    bits = 8 * dtype.itemsize
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.kind == "i" else (0, (1 << bits) - 1)


def lowest(dtype: DType) -> float | int:
    """The least finite value."""
    return -LARGEST_FINITE[dtype] if dtype.kind == "f" else limits(dtype)[0]
