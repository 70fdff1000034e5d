"""Random TensorProtos: every element type in every encoding that a GraphDef may have."""

from __future__ import annotations

import struct
from math import prod
from random import Random
from typing import Any

from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.values.dtypes import DType

LISTS = {  # the list field of each element type, by its number
    1: "float_val", 2: "double_val", 7: "string_val", 8: "scomplex_val", 9: "int64_val", 10: "bool_val",
    18: "dcomplex_val", 20: "resource_handle_val", 21: "variant_val", 22: "uint32_val", 23: "uint64_val",
    14: "half_val", 19: "half_val", **dict.fromkeys((3, 4, 5, 6, 11, 12, 13, 15, 16, 17, 29, 30, 31, 32), "int_val"),
    **dict.fromkeys((24, 25, 26, 27, 28, 33), "float8_val"),
}
FLOATS = (0.0, -0.0, 1.0, -1.5, 0.1, 1e-30, 3e38, 1234567.0, float("inf"), float("-inf"), float("nan"))
TEXTS = (b"", b"a", b"wide", b"\x00\xff", b'quoted "\\"', b"line\nbreak", "é".encode(), b"x" * 40)
PACKED = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")  # elements of less than a byte


def shapes(rng: Random) -> tuple[int, ...]:
    """A shape: mostly of few elements, at times of none, or of more than MLIR prints one by one."""
    return rng.choice(((), (), (1,), (2,), (3,), (2, 2), (1, 3, 2), (0,), (2, 0), (10,), (103,), (4, 30)))


def random_tensor(rng: Random, dtype: DType, shape: tuple[int, ...] | None = None) -> Any:
    """A TensorProto of this type: of a random shape, unless one is given."""
    shape = shapes(rng) if shape is None else shape
    tensor: Any = message_class("TensorProto")(dtype=dtype.number)
    tensor.tensor_shape.SetInParent()
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    _fill(rng, tensor, dtype, prod(shape))
    return tensor


def _fill(rng: Random, tensor: Any, dtype: DType, size: int) -> None:
    is_content = dtype.itemsize and rng.random() < 0.5
    distinct = rng.random() < 0.7
    values = [element(rng, dtype) for _ in range(size)] if distinct else [element(rng, dtype)] * size
    if is_content:
        tensor.tensor_content = b"".join(_content(dtype, value) for value in values)
        return
    count = rng.choice((size, size, min(size, 1), min(size, 2), 0))
    if LISTS[dtype.number] == "float8_val":
        tensor.float8_val = bytes(values[:count])
        return
    field = getattr(tensor, LISTS[dtype.number])
    for value in values[:count]:
        _append(field, dtype, value)


def element(rng: Random, dtype: DType) -> Any:
    """A value of this type: a number, the bits of a float of two bytes or less, a pair, bytes, or None."""
    if dtype.name in ("float32", "float64"):
        return rng.choice(FLOATS) if rng.random() < 0.5 else rng.uniform(-10, 10)
    if dtype.kind == "c":
        return rng.choice(FLOATS), rng.uniform(-2, 2)
    if dtype.kind == "f":
        return rng.getrandbits(2 if dtype.name in PACKED else 8 * dtype.itemsize)
    if dtype.kind == "b":
        return rng.random() < 0.5
    if dtype.name == "string":
        return rng.choice(TEXTS)
    if dtype.kind == "o":
        return None
    bits = int(dtype.name[-1]) if dtype.name in PACKED else 8 * dtype.itemsize
    is_signed = not dtype.name.lstrip("q").startswith("u")
    low = -(1 << bits - 1) if is_signed else 0
    return rng.choice((low, low + (1 << bits) - 1, 0, 1, rng.randrange(low, low + (1 << bits))))


def _content(dtype: DType, value: Any) -> bytes:
    if dtype.kind == "c":
        return struct.pack("<2f" if dtype.itemsize == 8 else "<2d", *map(_single, value))
    if dtype.name in ("float32", "float64"):
        return struct.pack("<f" if dtype.itemsize == 4 else "<d", value)
    return (int(value) & (1 << 8 * dtype.itemsize) - 1).to_bytes(dtype.itemsize, "little")


def _append(field: Any, dtype: DType, value: Any) -> None:
    if dtype.kind == "c":
        field.extend(map(_single, value))
    elif dtype.name == "resource":
        field.add(device="/device:CPU:0", container="c", name="handle", hash_code=7)
    elif dtype.name == "variant":
        field.add()
    else:
        field.append(value)


def _single(value: float) -> float:
    """The nearest float32 number."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])
