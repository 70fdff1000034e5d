"""Flatbuffers, the format of TensorFlow Text's models: tables of numbers, texts and vectors in one buffer.

A model is a stranger's bytes, so every position is checked against the buffer before it is read. A table begins with
the distance back to its vtable: two sizes, then for each field its offset in the table, 0 for a missing field. Numbers
are little-endian. Texts, vectors and tables are referred to by the distance forward from the reference.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from heald.api import InvalidArgument

Array = np.ndarray[Any, Any]


class FlatTable:
    """A table of a buffer. A getter returns the field of this number, or its default where the table lacks it."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        vtable = at - _unpack("<i", data, at)
        size = _unpack("<H", data, vtable)
        self._offsets = [_unpack("<H", data, vtable + 4 + 2 * i) for i in range(max(0, size - 4) // 2)]

    def _position(self, field: int) -> int | None:
        offset = self._offsets[field] if field < len(self._offsets) else 0
        return self._at + offset if offset else None

    def number(self, field: int, form: str = "<I", default: Any = 0) -> Any:
        """A number: "<I" unsigned, "<i" signed, "<f" float, "<?" boolean."""
        position = self._position(field)
        return default if position is None else _unpack(form, self._data, position)

    def flag(self, field: int) -> bool:
        return bool(self.number(field, "<B"))

    def text(self, field: int) -> bytes:
        position = self._position(field)
        return b"" if position is None else _text(self._data, position)

    def texts(self, field: int) -> list[bytes]:
        position = self._position(field)
        if position is None:
            return []
        start, count = _vector(self._data, position, 4)
        return [_text(self._data, start + 4 * i) for i in range(count)]

    def vector(self, field: int, dtype: str = "<u4") -> Array:
        """A vector of numbers of a fixed size, as an array."""
        position = self._position(field)
        if position is None:
            return np.empty(0, dtype)
        start, count = _vector(self._data, position, np.dtype(dtype).itemsize)
        return np.frombuffer(self._data, dtype, count, start)

    def table(self, field: int) -> FlatTable | None:
        position = self._position(field)
        return None if position is None else FlatTable(self._data, position + _unpack("<I", self._data, position))


def root_table(model: Array) -> FlatTable:
    """The outermost table of a model in a uint8 vector. Raises InvalidArgument for bytes that are no flatbuffer."""
    data = model.tobytes()
    return FlatTable(data, _unpack("<I", data, 0))


def _text(data: bytes, position: int) -> bytes:
    start, size = _vector(data, position, 1)
    return data[start : start + size]


def _vector(data: bytes, position: int, itemsize: int) -> tuple[int, int]:
    """The start and the length of the vector that is referred to at `position`."""
    at = position + _unpack("<I", data, position)
    count = _unpack("<I", data, at)
    if at + 4 + count * itemsize > len(data):
        raise InvalidArgument(f"the model is damaged: a vector of {count} elements at byte {at} ends beyond its end")
    return at + 4, count


def _unpack(form: str, data: bytes, at: int) -> Any:
    if not 0 <= at <= len(data) - struct.calcsize(form):
        raise InvalidArgument(f"the model is damaged: it has {len(data)} bytes, and refers to byte {at}")
    return struct.unpack_from(form, data, at)[0]
