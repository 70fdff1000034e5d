"""Cells and values of JSON as the arrays of an input's type.

Each value means the same in every batch: a column whose values differ in kind is converted value by value. A text is
the number that Python reads from it. An empty text and null are NaN where the type has it. 2.0 is the integer 2, and
1.5 is none. Truth values are true, false, yes, no, 1 and 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from heald.api import DType, dtypes

from .row_batch import BadRows

Array = Any
Shape = tuple[int, ...]
_NO_VALUE = (ValueError, TypeError, OverflowError, KeyError)  # UnicodeError is a ValueError
_TRUTH = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
_SHOWN = 40  # characters of a value in a message


class Target(NamedTuple):
    """The input that values feed. `shape`: that of one row's value, with None for any length; None for any shape."""

    name: str
    dtype: DType
    shape: tuple[int | None, ...] | None


def array_of_column(column: Sequence[Any], target: Target, *, batched: bool) -> Array:
    """The values of an input as one array; as a list where a model takes one row at a time.

    Raises BadRows for values of another type or shape, and for values of several shapes where all rows are one array.
    """
    import numpy as np

    kind = bool if target.dtype is dtypes.bool_ else target.dtype.numpy
    convert: Callable[[Sequence[Any]], Array]
    convert = _array_of_texts if target.dtype is dtypes.string else lambda values: array_of_numbers(values, kind)
    if batched:
        with suppress(*_NO_VALUE):  # each value alone tells the rows at fault
            array = convert(column)
            if _fits(array.shape[1:], target):
                return array
    values = _convert_alone(column, convert, target)
    _check_shapes(values, column, target)
    if target.shape is not None:
        values = [np.reshape(value, _pad_shape(np.shape(value), target.shape)) for value in values]
    if not batched:
        return values
    _check_equal_shapes(values)
    return np.stack(values)


def _convert_alone(column: Sequence[Any], convert: Callable[[Sequence[Any]], Array], target: Target) -> list[Array]:
    values, reasons = [], {}
    for row, value in enumerate(column):
        try:
            values.append(convert([value])[0])
        except _NO_VALUE:
            shown = "an empty cell" if value == "" else ascii(value) if _has_surrogate(value) else f"'{value}'"
            reasons[row] = (f"no value for input '{target.name}'" if value is None else
                            f"{_shorten(shown)} is no {target.dtype.name} for input '{target.name}'")
    if reasons:
        raise BadRows(reasons)
    return values


def _has_surrogate(value: Any) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in str(value))


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN + 2 else f"{text[:_SHOWN + 1]}'"


def _fits(shape: Shape, target: Target) -> bool:
    """True for a shape that the input takes."""
    if target.shape is None:
        return True
    padded = _pad_shape(shape, target.shape)
    return len(padded) == len(target.shape) and all(
        size in (None, actual) for size, actual in zip(target.shape, padded, strict=True))


def _pad_shape(shape: Shape, target: Sequence[int | None]) -> Shape:
    """The shape with the dimensions of length 1 that it lacks behind its own."""
    return shape + (1,) * (len(target) - len(shape))


def _check_shapes(values: Sequence[Array], column: Sequence[Any], target: Target) -> None:
    """Raises BadRows for values of other shapes than the input takes."""
    import numpy as np

    reasons = {}
    for row, value in enumerate(values):
        if not _fits(np.shape(value), target):
            wanted = ",".join("?" if size is None else str(size) for size in target.shape or ())
            reasons[row] = (f"no value for input '{target.name}'" if column[row] is None else
                            f"a value of shape {list(np.shape(value))}, where input '{target.name}' takes [{wanted}]")
    if reasons:
        raise BadRows(reasons)


def _check_equal_shapes(values: Sequence[Array]) -> None:
    """Raises BadRows for the rows whose shape is not that of most rows."""
    import numpy as np

    shapes = [np.shape(value) for value in values]
    usual = Counter(shapes).most_common(1)[0][0]
    reasons = {row: f"a value of shape {list(shape)} beside others of {list(usual)}"
               for row, shape in enumerate(shapes) if shape != usual}
    if reasons:
        raise BadRows(reasons)


def array_of_numbers(values: Sequence[Any], kind: Any) -> Array:
    """An array of numbers, or of texts that are numbers. Raises the errors of _NO_VALUE where a value is none, and
    where texts and other values may mean another thing together than alone."""
    import numpy as np

    if all(isinstance(value, str) for value in values):
        return _numbers_of_texts(values, kind)
    exact = np.array(values)
    if exact.dtype.kind in "US" or (exact.dtype.kind == "O" and kind is bool):
        items = np.array(values, object).reshape(-1).tolist()
        return np.array([_number(item, kind) for item in items], kind).reshape(exact.shape)
    if kind is bool:
        if not ((exact == 0) | (exact == 1)).all():
            raise ValueError("neither 0 nor 1")
        return exact.astype(bool)
    with np.errstate(over="ignore"):  # 1e300 is an infinity of float32
        array = np.array(values, np.float64).astype(kind) if np.dtype(kind).kind == "V" else np.array(values, kind)
    if array.dtype.kind in "iu" and exact.dtype.kind == "f" and (exact != array).any():
        raise ValueError("a fraction")
    return array


def _number(value: Any, kind: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode()
    if kind is not bool or isinstance(value, str):
        return array_of_numbers([value], kind)[0]
    if value not in (0, 1):
        raise ValueError("neither 0 nor 1")
    return bool(value)


def _numbers_of_texts(texts: Sequence[str], kind: Any) -> Array:
    import numpy as np

    letter = np.dtype(kind).kind
    if letter == "b":
        return np.array([_TRUTH[text.strip().lower()] for text in texts], bool)
    if letter in "iu":
        return np.array([int(text) for text in texts], kind)
    if not all(texts):
        texts = [text or "nan" for text in texts]
    if letter == "c":
        return np.array(texts).astype(kind)
    with np.errstate(over="ignore"):
        return np.fromiter(map(float, texts), np.float64, len(texts)).astype(kind)


def _array_of_texts(values: Sequence[Any]) -> Array:
    """The texts as bytes; a list has a text in each place."""
    import numpy as np

    if not any(isinstance(value, list | tuple) for value in values):
        texts = np.empty(len(values), object)
        texts[:] = [_bytes_of(value) for value in values]
        return texts
    items = np.array(values, object)
    return np.array([_bytes_of(item) for item in items.reshape(-1).tolist()], object).reshape(items.shape)


def _bytes_of(value: Any) -> bytes:
    if value is None or isinstance(value, dict | list):
        raise TypeError("no text")
    return value if isinstance(value, bytes) else str(value).encode()
