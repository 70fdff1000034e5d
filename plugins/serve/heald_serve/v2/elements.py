"""Elements of tensors: raw bytes, and the data of JSON.

Raw elements are little-endian; a boolean is a byte; a string is its length, four bytes, and its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from heald.api import DType, dtypes
from heald.errors import InvalidArgument, Unimplemented

from ..raw_numbers import IS_LITTLE_ENDIAN, little_endian
from ..rest.request_tensors import to_tensor
from ..rest.response_text import float_texts, string_text

LARGEST_COPIED_BYTES = 64 << 10
_LENGTH_BYTES = 4
MOST_DIMS = 64  # of an array of NumPy
Shape = Sequence[int]


def check_shape(name: str, shape: Shape) -> None:
    """Raises InvalidArgument for a shape that no tensor has."""
    if len(shape) > MOST_DIMS or any(not 0 <= size < 1 << 63 for size in shape):
        raise InvalidArgument(f"input '{name}' has the shape {list(shape)[:MOST_DIMS]}")


def from_raw(name: str, data: bytes | memoryview, dtype: DType, shape: Shape) -> Any:
    """The array of raw elements. Raises InvalidArgument where shape and bytes contradict."""
    check_shape(name, shape)
    count = prod(shape)
    if dtype is dtypes.string:
        return _strings(name, bytes(data), count).reshape(shape)
    if len(data) != count * dtype.itemsize:
        raise InvalidArgument(f"input '{name}' has {len(data)} bytes, its shape {list(shape)} of {dtype} needs "
                              f"{count * dtype.itemsize}")
    if dtype is dtypes.bool_:
        return (np.frombuffer(data, np.uint8) != 0).reshape(shape)
    stored_type = dtype.numpy if IS_LITTLE_ENDIAN else dtype.numpy.newbyteorder("<")  # a run converts any other object
    array = np.frombuffer(data, stored_type).reshape(shape)
    return array.copy() if len(data) <= LARGEST_COPIED_BYTES else array  # a run converts an array that is not writable


def _strings(name: str, data: bytes, count: int) -> Any:
    items: list[bytes] = []
    at = 0
    while at < len(data):
        start = at + _LENGTH_BYTES
        end = start + int.from_bytes(data[at:start], "little")
        if start > len(data) or end > len(data):
            raise InvalidArgument(f"input '{name}' ends within its string {len(items)}")
        items.append(data[start:end])
        at = end
    if len(items) != count:
        raise InvalidArgument(f"input '{name}' has {len(items)} strings, its shape needs {count}")
    return object_array(items)


def object_array(items: Sequence[bytes]) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def to_raw(array: Any, dtype: DType) -> bytes:
    if dtype is not dtypes.string:
        return little_endian(array)
    parts: list[bytes] = []
    for item in array.reshape(-1):
        text = item.encode() if isinstance(item, str) else item
        parts += (len(text).to_bytes(_LENGTH_BYTES, "little"), text)
    return b"".join(parts)


def from_json(name: str, data: Any, dtype: DType, shape: Shape) -> Any:
    """The array of flat or nested lists. Raises InvalidArgument, and Unimplemented for types that JSON lacks."""
    check_shape(name, shape)
    array = to_tensor(data, dtype)
    if array.size != prod(shape):
        raise InvalidArgument(f"input '{name}' has {array.size} elements, its shape {list(shape)} needs {prod(shape)}")
    return array.reshape(shape)


def to_json(name: str, array: Any, dtype: DType) -> str:
    """The flat list of elements. Raises Unimplemented for types that JSON lacks, InvalidArgument for other bytes."""
    flat = array.reshape(-1)
    if dtype is dtypes.string:
        try:
            texts = [string_text(item.encode() if isinstance(item, str) else item.decode().encode()) for item in flat]
        except UnicodeDecodeError:
            raise InvalidArgument(f"output '{name}' has bytes that are no UTF-8", hint="ask for binary_data") from None
    elif dtype in (dtypes.float32, dtypes.float64):
        texts = float_texts(flat)
    elif dtype is dtypes.bool_:
        texts = ["true" if item else "false" for item in flat.tolist()]
    elif dtype.kind in "iu":
        texts = [*map(str, flat.tolist())]
    else:
        raise Unimplemented(f"output '{name}' is of {dtype}, which JSON lacks", hint="ask for binary_data")
    return f"[{','.join(texts)}]"
