"""Vocabularies: text files that fill lookup tables, a line for each key.

A key or value is the number of its line, the whole line, or one of the fields that a delimiter separates. Errors and
the syntax of numbers follow TensorFlow's lookup_util.cc (but numbers are decimal here).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heald.api import DType, dtypes
from heald.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

LINE_NUMBER, WHOLE_LINE = -1, -2  # in place of the number of a field
_INTEGER = re.compile(rb"\s*[+-]?[0-9]+\s*")


def read(text: bytes, attrs: Mapping[str, Any], key: DType, value: DType) -> tuple[Array, Array]:
    """Read keys and values, a vector each, from a file's text; `attrs` are InitializeTableFromTextFileV2's.

    Raises InvalidArgument for a text without them, and for types that text cannot hold.
    """
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    vocabulary_size = attrs["vocab_size"]
    if vocabulary_size >= 0:
        if len(lines) < vocabulary_size:
            raise InvalidArgument(f"the vocabulary has {len(lines)} lines, not the {vocabulary_size} of its vocab_size")
        lines = lines[:vocabulary_size]
    lines = [line.removesuffix(b"\r") for line in lines]
    if not all(lines):
        raise InvalidArgument(f"line {lines.index(b'')} of the vocabulary is empty")
    if not lines:
        raise InvalidArgument("the vocabulary is empty")
    columns = attrs["key_index"], attrs["value_index"]
    fields = _fields(lines, attrs["delimiter"], max(columns))
    return (_column(lines, fields, columns[0], key, attrs["offset"]),
            _column(lines, fields, columns[1], value, attrs["offset"]))


def _fields(lines: Sequence[bytes], delimiter: str, last: int) -> list[list[bytes]]:
    """Split each line into fields; a negative `last` needs no fields. Each line must have a field of index `last`."""
    if last < 0:
        return []
    if len(delimiter.encode()) != 1:
        raise InvalidArgument(f"the delimiter of a vocabulary must be one character, not {delimiter!r}")
    fields = [line.split(delimiter.encode()) for line in lines]
    for number, line_fields in enumerate(fields):
        if len(line_fields) <= last:
            raise InvalidArgument(f"line {number} of the vocabulary has {len(line_fields)} fields, "
                                  f"{last + 1} are needed")
    return fields


def _column(
    lines: Sequence[bytes], fields: Sequence[Sequence[bytes]], index: int, dtype: DType, offset: int
) -> Array:
    import numpy as np

    if index == LINE_NUMBER:
        if dtype is not dtypes.int64:
            raise InvalidArgument(f"the numbers of a vocabulary's lines are int64, not {dtype.name}")
        return np.arange(offset, offset + len(lines))
    texts = lines if index == WHOLE_LINE else [line_fields[index] for line_fields in fields]
    if dtype is dtypes.string:
        strings = np.empty(len(texts), object)
        strings[:] = texts
        return strings
    if dtype.kind not in ("iu" if index == WHOLE_LINE else "iuf"):
        raise InvalidArgument(f"a vocabulary's {'lines' if index == WHOLE_LINE else 'fields'} are not read as "
                              f"{dtype.name}")
    numbers = [_number(text, number, dtype) for number, text in enumerate(texts)]
    with np.errstate(over="ignore"):  # numbers too large become infinite
        return np.array(numbers, dtype.numpy)


def _number(text: bytes, line: int, dtype: DType) -> int | float:
    import numpy as np

    try:
        if dtype.kind == "f" and b"_" not in text:
            return float(text)
        integer = int(text) if _INTEGER.fullmatch(text) else None
        if integer is not None and np.iinfo(dtype.numpy).min <= integer <= np.iinfo(dtype.numpy).max:
            return integer
    except ValueError:
        pass
    raise InvalidArgument(f"'{text.decode(errors='replace')}' in line {line} of the vocabulary is no {dtype.name}")
