"""Element types by their names in the protocols, and arrays as raw bytes.

Raw elements are little-endian; in the Open Inference Protocol a string is its length, four bytes, and its bytes. String
tensors are object arrays of bytes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .errors import ClientError

STRING, STRING_NUMBER = "BYTES", 7
# NumPy's name, TensorFlow's name in metadata, TensorFlow's number, the name of the Open Inference Protocol.
_ROWS = (
    ("float32", "DT_FLOAT", 1, "FP32"), ("float64", "DT_DOUBLE", 2, "FP64"), ("int32", "DT_INT32", 3, "INT32"),
    ("uint8", "DT_UINT8", 4, "UINT8"), ("int16", "DT_INT16", 5, "INT16"), ("int8", "DT_INT8", 6, "INT8"),
    ("object", "DT_STRING", STRING_NUMBER, STRING), ("complex64", "DT_COMPLEX64", 8, ""),
    ("int64", "DT_INT64", 9, "INT64"), ("bool", "DT_BOOL", 10, "BOOL"), ("bfloat16", "DT_BFLOAT16", 14, "BF16"),
    ("uint16", "DT_UINT16", 17, "UINT16"), ("complex128", "DT_COMPLEX128", 18, ""),
    ("float16", "DT_HALF", 19, "FP16"), ("uint32", "DT_UINT32", 22, "UINT32"), ("uint64", "DT_UINT64", 23, "UINT64"))
NUMBERS = {name: number for name, _, number, _ in _ROWS}
DATATYPES = {name: datatype for name, _, _, datatype in _ROWS if datatype}
_NAMES: dict[Any, str] = {key: row[0] for row in _ROWS for key in row[1:] if key}


def numpy_type(key: str | int) -> Any:
    """The NumPy type of a name or number of a protocol. Raises ClientError for an unknown one."""
    name = _NAMES.get(key)
    if name is None:
        raise ClientError("UNIMPLEMENTED", f"the element type {key} has no counterpart in NumPy")
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise ClientError("UNIMPLEMENTED", "bfloat16 needs the package ml_dtypes") from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def static_shape(sizes: Sequence[int]) -> tuple[int | None, ...]:
    """The shape of sizes in which less than 0 is an unknown one."""
    return tuple(None if size < 0 else size for size in sizes)


def to_array(value: Any, name: str) -> Any:
    """The array of an input: texts become bytes in an object array. Raises ClientError for an odd element type."""
    try:
        array = _dense_array(value)
    except ValueError as error:
        raise ClientError("INVALID_ARGUMENT", f"input '{name}' is no array: {error}") from None
    if array.dtype.kind in "SUO":
        return _to_bytes(array, name)
    if array.dtype.name not in NUMBERS:
        raise ClientError("INVALID_ARGUMENT", f"input '{name}' is of {array.dtype}, which no protocol has")
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _dense_array(value: Any) -> Any:
    """The array; of lists of texts and bytes an object array, since NumPy's own bytes lose NULs at their end."""
    try:
        array = np.asarray(value)
    except ValueError:  # of lists of unequal lengths, and of texts beside bytes
        return np.asarray(value, object)
    return array if array.dtype.kind not in "SU" or hasattr(value, "dtype") else np.asarray(value, object)


def _to_bytes(array: Any, name: str) -> Any:
    try:
        items = [item.encode() if isinstance(item, str) else item for item in array.reshape(-1).tolist()]
    except UnicodeEncodeError as error:
        raise ClientError("INVALID_ARGUMENT", f"input '{name}' has a text that is no UTF-8: {error.object!r}") from None
    if not all(isinstance(item, bytes) for item in items):
        raise ClientError("INVALID_ARGUMENT", f"input '{name}' has elements that are neither texts nor bytes")
    return object_array(items).reshape(array.shape)


def object_array(items: Sequence[bytes]) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def datatype_of(array: Any, name: str) -> str:
    """The name of the Open Inference Protocol. Raises ClientError for a type without one."""
    datatype = DATATYPES.get(array.dtype.name)
    if datatype is None:
        raise ClientError("INVALID_ARGUMENT", f"input '{name}' is of {array.dtype}, which the protocol lacks")
    return datatype


def to_raw(array: Any) -> bytes:
    if array.dtype != object:
        data: bytes = array.tobytes()
        return data
    return b"".join(part for item in array.reshape(-1) for part in (len(item).to_bytes(4, "little"), item))


def from_raw(data: bytes | memoryview, datatype: str, shape: Sequence[int], name: str) -> Any:
    """The array of an output. Raises ClientError where bytes and shape contradict."""
    dtype = numpy_type(datatype)
    try:
        if min(shape, default=0) < 0:
            raise ValueError
        if datatype == STRING:
            return object_array(_strings(bytes(data))).reshape(shape)
        return np.frombuffer(data, dtype.newbyteorder("<")).reshape(shape)
    except ValueError:
        raise ClientError("DATA_LOSS", f"output '{name}' has {len(data)} bytes for the shape {list(shape)}, "
                                       f"{prod(shape)} elements of {datatype}") from None


def _strings(data: bytes) -> list[bytes]:
    """Raises ValueError for bytes that end within a string."""
    items, at = [], 0
    while at < len(data):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "little")
        if at > len(data) or start > len(data):
            raise ValueError
        items.append(data[start:at])
    return items
