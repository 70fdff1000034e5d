"""TensorProto and arrays.

An answer has its elements in the typed field of their type, as TensorFlow Serving's has, or in tensor_content where an
option asks for that. Floats and booleans enter the typed field as packed bytes, which takes no step for each element.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from heald.api import TensorInfo, TensorValue, dtypes
from heald.errors import HealdError, InvalidArgument

from ..raw_numbers import IS_LITTLE_ENDIAN, little_endian

_PACKED_FIELDS = {"float32": 5, "float64": 6, "complex64": 9, "bool": 11, "complex128": 12}
_WIDE_FIELDS = {"int64": "int64_val", "uint32": "uint32_val", "uint64": "uint64_val"}
_HALVES = ("float16", "bfloat16")
LARGEST_PLAIN_BYTES = 64 << 10
_PLAIN_TYPES = {} if not IS_LITTLE_ENDIAN else {dtypes.named(name).number: np.dtype(name) for name in (
    "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")}
LARGEST_FILLED_BYTES = 64 << 20
STRING_BYTES = 8  # of an element in an object array
_TENSOR_CONTENT, _STRINGS, _FLOAT8 = 4, 8, 18


def read_tensors(messages: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of messages by name. Raises InvalidArgument for one that is no tensor."""
    return {name: read_tensor(message, name) for name, message in messages.items()}


def read_tensor(message: Any, name: str) -> Any:
    """The array. Raises InvalidArgument, also for a few bytes that stand for a large array.

    A short list repeats its last element up to the shape, and each element of a whole list has a byte at least.
    """
    array = _plain_tensor(message)
    if array is not None:
        return array
    raw = message.SerializeToString()
    try:
        value = TensorValue.read(raw, 0, len(raw))
        nbytes = value.size * (value.dtype.itemsize or STRING_BYTES)
        if value.size > len(raw) and nbytes > LARGEST_FILLED_BYTES:
            raise InvalidArgument(f"{len(raw)} bytes stand for {nbytes:,}; a list that is shorter than its shape fills "
                                  f"{LARGEST_FILLED_BYTES:,} at most")
        return value.array()
    except HealdError as error:
        raise InvalidArgument(f"tensor parsing error: {name}: {error}") from None


def _plain_tensor(message: Any) -> Any | None:
    """The array of a small tensor of raw numbers, as clients write most; None for any other.

    It is a copy, since a run converts an array that cannot be written.
    """
    content, dtype = message.tensor_content, _PLAIN_TYPES.get(message.dtype)
    if dtype is None or not 0 < len(content) <= LARGEST_PLAIN_BYTES or message.tensor_shape.unknown_rank:
        return None
    shape = [dim.size for dim in message.tensor_shape.dim]
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != len(content):
        return None
    return np.frombuffer(content, dtype).reshape(shape).copy()


def write_tensor(message: Any, array: Any, *, as_content: bool = False) -> None:
    """Fill an empty TensorProto. Raises InvalidArgument for an array whose type has no counterpart."""
    array = np.asarray(array)
    dtype = dtypes.of_numpy(array.dtype)
    message.dtype = dtype.number
    message.tensor_shape.SetInParent()
    for size in array.shape:
        message.tensor_shape.dim.add(size=size)
    if dtype is dtypes.string:
        message.string_val.extend(item.encode() if isinstance(item, str) else item for item in array.reshape(-1))
    elif as_content or dtype.kind == "q":
        message.MergeFromString(_bytes_field(_TENSOR_CONTENT, little_endian(array)))
    else:
        _write_elements(message, array, dtype.name)


def _write_elements(message: Any, array: Any, kind: str) -> None:
    if kind in _PACKED_FIELDS:
        message.MergeFromString(_bytes_field(_PACKED_FIELDS[kind], little_endian(array)))
    elif kind.startswith("float8"):
        message.float8_val = array.tobytes()
    elif kind in _HALVES:
        message.half_val.extend(array.reshape(-1).view(np.uint16).tolist())
    else:
        getattr(message, _WIDE_FIELDS.get(kind, "int_val")).extend(array.reshape(-1).astype(np.int64 if kind != "uint64"
                                                                                           else np.uint64).tolist())


def _bytes_field(number: int, data: bytes) -> bytes:
    """A field of bytes as protobuf writes it: tag, length as a varint, bytes."""
    head, length = bytearray(), len(data)
    for value in (number << 3 | 2, length):
        while value > 0x7F:
            head.append(value & 0x7F | 0x80)
            value >>= 7
        head.append(value)
    return bytes(head) + data if data else b""


def write_tensor_info(message: Any, info: TensorInfo) -> None:
    """Fill an empty TensorInfo: name, type and shape of a signature's tensor."""
    message.name = info.tensor
    message.dtype = info.meta.dtype.number
    shape = info.meta.shape
    message.tensor_shape.SetInParent()
    if shape is None:
        message.tensor_shape.unknown_rank = True
    for size in shape or ():
        message.tensor_shape.dim.add(size=-1 if size is None else size)
