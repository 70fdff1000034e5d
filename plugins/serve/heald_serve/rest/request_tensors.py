"""JSON to tensors: the rows of `instances`, or the columns of `inputs`.

Regular values, almost all, are read level by level: lists of one length, then elements of fitting types, in C. A value
that is not regular is walked element by element, as TensorFlow Serving does, for its error.
"""

from __future__ import annotations

import base64
import binascii
import re
from array import array as number_array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from heald.api import DType, TensorInfo
from heald.errors import HealdError, InvalidArgument, Unimplemented

from .json_text import debug_text, type_name

MOST_DIMS = 64  # of an array of NumPy
_CHECKED_AS_INT32 = ("int8", "int16", "uint8", "int32")
_FLOATS, _INTEGERS = ("float32", "float64"), (*_CHECKED_AS_INT32, "uint16", "int64", "uint32", "uint64")
_RANGES = dict.fromkeys(_CHECKED_AS_INT32, (-(1 << 31), (1 << 31) - 1)) | {
    name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in ("int64", "uint16", "uint32", "uint64")}
_LISTS = {list}
_TYPE_CODES = {"float32": "f", "float64": "d"}
_SPACE = re.compile(r"\s+")

Arrays = dict[str, Any]
Infos = Mapping[str, TensorInfo]


def request_tensors(document: Mapping[str, Any], inputs: Infos) -> tuple[Arrays, bool]:
    """The tensors of a predict body, and True for the row form. Raises InvalidArgument and Unimplemented."""
    has_rows, has_columns = "instances" in document, "inputs" in document
    if has_rows and has_columns:
        raise InvalidArgument(f"JSON Value: {debug_text(document)} Predict requests expecting only one of 'inputs' or "
                              "'instances' keys but both were present")
    if has_rows:
        return rows_to_tensors(document["instances"], inputs), True
    if has_columns:
        return columns_to_tensors(document["inputs"], inputs), False
    raise InvalidArgument("Missing 'inputs' or 'instances' key")


def rows_to_tensors(rows: Any, inputs: Infos) -> Arrays:
    """The tensors of a list of rows."""
    if not isinstance(rows, list):
        raise InvalidArgument("Expecting 'instances' to be an list/array")
    if not rows:
        raise InvalidArgument("No values in 'instances' array")
    are_objects = _is_object(rows[0])
    if not are_objects and len(inputs) > 1:
        raise InvalidArgument("instances is a plain list, but expecting list of objects as multiple input tensors "
                              "required as per tensorinfo_map")
    columns = _columns_of_objects(rows, inputs) if are_objects else _columns_of_values(rows, inputs)
    if columns is not None:
        arrays = {name: regular_array(column, inputs[name].meta.dtype) for name, column in columns.items()}
        if all(array is not None for array in arrays.values()):
            return arrays
    return _walk_rows(rows, inputs, are_objects=are_objects)


def _columns_of_values(rows: list[Any], inputs: Infos) -> dict[str, list[Any]] | None:
    return dict.fromkeys(inputs, rows) if len(inputs) == 1 else None


def _columns_of_objects(rows: list[Any], inputs: Infos) -> dict[str, list[Any]] | None:
    """The values by input, or None when a row is no object of exactly the inputs."""
    if any(not isinstance(row, dict) or row.keys() != inputs.keys() for row in rows):
        return None
    return {name: [row[name] for row in rows] for name in inputs}


def columns_to_tensors(value: Any, inputs: Infos) -> Arrays:
    """The tensors of a value, or of an object of values by input."""
    if not _is_object(value):
        if len(inputs) != 1:
            raise InvalidArgument("inputs is a plain value/list, but expecting an object as multiple input tensors "
                                  "required as per tensorinfo_map")
        ((name, info),) = inputs.items()
        return {name: to_tensor(value, info.meta.dtype)}
    arrays: Arrays = {}
    for name, info in inputs.items():
        if name not in value:
            raise InvalidArgument(f"Missing named input: {name} in 'inputs' object.")
        arrays[name] = to_tensor(value[name], info.meta.dtype)
    return arrays


def to_tensor(value: Any, dtype: DType) -> Any:
    """The tensor of nested lists. Raises InvalidArgument for values that do not fit."""
    array = regular_array(value, dtype)
    return walked_array(value, dtype) if array is None else array


def regular_array(value: Any, dtype: DType) -> Any | None:
    """The array of nested lists, or None for values that are not regular."""
    shape: list[int] = []
    flat = [value]
    while flat and isinstance(flat[0], list):
        length = len(flat[0])
        if len(shape) == MOST_DIMS or not _are_lists(flat, length, dtype):
            return None
        shape.append(length)
        flat = list(chain.from_iterable(flat)) if length != 1 else [item for (item,) in flat]
    if 0 in shape:
        return np.zeros(shape, _numpy_type(dtype))
    elements = _regular_elements(flat, dtype)
    return None if elements is None else elements.reshape(shape)


def _are_lists(items: list[Any], length: int, dtype: DType) -> bool:
    """True for lists of one length. For numbers also where objects or texts are among them: these leave texts as
    elements, which are no numbers."""
    if not length or dtype.name == "string":
        return set(map(type, items)) == _LISTS and set(map(len, items)) == {length}
    try:
        return set(map(len, items)) == {length}
    except TypeError:  # a number is among them
        return False


def _regular_elements(flat: list[Any], dtype: DType) -> Any | None:
    kinds = set(map(type, flat))
    name = dtype.name
    if name in _FLOATS and kinds <= {int, float}:
        try:  # without warnings, which a cast of NumPy gives for a number beyond the type
            return np.frombuffer(number_array(_TYPE_CODES[name], flat), dtype.numpy)
        except OverflowError:
            return None
    if name in _INTEGERS and kinds == {int}:
        low, high = _RANGES[name]
        if min(flat) >= low and max(flat) <= high:
            return np.array(flat, np.uint64 if name == "uint64" else np.int64).astype(dtype.numpy)
    if name == "bool" and kinds == {bool}:
        return np.array(flat, np.bool_)
    if name == "string" and kinds == {str}:
        return _object_array([text.encode("utf-8", "surrogatepass") for text in flat])
    return None


def _object_array(items: Sequence[bytes]) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _numpy_type(dtype: DType) -> Any:
    _check_dtype(dtype, None)
    return dtype.numpy


def _check_dtype(dtype: DType, value: Any) -> None:
    if dtype.name not in (*_FLOATS, *_INTEGERS, "bool", "string"):
        raise Unimplemented(f"Conversion of JSON Value: {debug_text(value)} to type: {dtype.tf_name}")


# The exact way: in the order of TensorFlow Serving's checks, with its texts.


def _walk_rows(rows: list[Any], inputs: Infos, *, are_objects: bool) -> Arrays:
    columns: dict[str, list[Any]] = {}
    for at, row in enumerate(rows):
        if _is_object(row) != are_objects:
            kind, expected = ("list", "object") if are_objects else ("object", "value/list")
            raise InvalidArgument(f"Expecting {expected} but got {kind} at item {at} of input list")
        items = row.items() if are_objects else [(next(iter(inputs), ""), row)]
        for name, value in items:
            key = f"key: {name} " if are_objects else ""
            with _within(f"Failed to process element: {at} {key}of 'instances' list. Error: "):
                _add_row(columns.setdefault(name, []), name, value, inputs)
        if are_objects and row.keys() != inputs.keys():
            raise InvalidArgument(f"Failed to process element: {at} of 'instances' list. JSON object: "
                                  f"{debug_text(row)} keys must be equal to: {','.join(sorted(inputs))}")
    return {name: np.stack(column) for name, column in columns.items()}


def _add_row(column: list[Any], name: str, value: Any, inputs: Infos) -> None:
    if name not in inputs:
        raise InvalidArgument(f"JSON object: does not have named input: {name}")
    array = walked_array(value, inputs[name].meta.dtype)
    if column and column[0].size != array.size:
        raise InvalidArgument(f"Expecting tensor size: {column[0].size} but got: {array.size}")
    if column and column[0].shape != array.shape:
        raise InvalidArgument(f"Expecting shape {_shape_text(column[0].shape)} but got: {_shape_text(array.shape)}")
    column.append(array)


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


class _within:  # noqa: N801 - a context manager, used as a function
    """Errors get this text before theirs, and their status's name."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, HealdError):
            from ..http.messages import CODE_NAMES

            raise InvalidArgument(f"{self._prefix}{CODE_NAMES[error.code]}: {error.message}") from None


def walked_array(value: Any, dtype: DType) -> Any:
    """The array of a value, element by element. Raises InvalidArgument at the first that does not fit."""
    _check_dtype(dtype, value)
    shape: list[int] = []
    first = value
    while isinstance(first, list):
        shape.append(len(first))
        if len(shape) > MOST_DIMS:
            raise InvalidArgument(f"JSON Value has more than {MOST_DIMS} dimensions")
        if not first:
            break
        first = first[0]
    elements: list[Any] = []
    _fill(value, 0, shape, _CONVERTERS[_family(dtype)], dtype, elements)
    with np.errstate(over="ignore", under="ignore"):
        array = _object_array(elements) if dtype.name == "string" else _cast(elements, dtype)
    return array.reshape(shape)


def _cast(elements: list[Any], dtype: DType) -> Any:
    wide: Any = {"float": np.float64, "bool": np.bool_}.get(_family(dtype), np.int64)
    return np.array(elements, np.uint64 if dtype.name == "uint64" else wide).astype(dtype.numpy)


def _fill(
    value: Any, level: int, shape: Sequence[int], convert: Callable[[Any, DType], Any], dtype: DType,
    elements: list[Any],
) -> None:
    if not isinstance(value, list):
        if level != len(shape):
            raise InvalidArgument(f"JSON Value: {debug_text(value)} found at incorrect level: {level + 1} in the JSON "
                                  f"DOM. Expected at level: {len(shape)}")
        elements.append(convert(value, dtype))
        return
    if level >= len(shape):
        raise InvalidArgument(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise InvalidArgument(f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: "
                              f"{shape[level]}")
    for item in value:
        _fill(item, level + 1, shape, convert, dtype, elements)


def _family(dtype: DType) -> str:
    return "float" if dtype.name in _FLOATS else "integer" if dtype.name in _INTEGERS else dtype.name


def _mismatch(value: Any, dtype: DType) -> InvalidArgument:
    return InvalidArgument(f"JSON Value: {debug_text(value)} Type: {type_name(value)} is not of expected type: "
                           f"{dtype.tf_name}")


def _to_float(value: Any, dtype: DType) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(value, dtype)
    try:
        return float(value)
    except OverflowError:
        raise _mismatch(value, dtype) from None


def _to_integer(value: Any, dtype: DType) -> int:
    low, high = _RANGES[dtype.name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _mismatch(value, dtype)
    return value


def _to_bool(value: Any, dtype: DType) -> bool:
    if not isinstance(value, bool):
        raise _mismatch(value, dtype)
    return value


def to_bytes(value: Any, dtype: DType | None = None) -> bytes:
    """The bytes of a string or of a b64 object."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if not _is_b64(value):
        if dtype is None:
            raise InvalidArgument(f"JSON Value: {debug_text(value)} is neither a string nor a b64 object")
        raise _mismatch(value, dtype)
    return decode_b64(value["b64"])


def decode_b64(text: Any) -> bytes:
    """Raises InvalidArgument for a text that is not in base 64. White space and missing padding are allowed."""
    try:
        packed = _SPACE.sub("", text).rstrip("=")
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise InvalidArgument("Unable to base64 decode") from None


_CONVERTERS: dict[str, Callable[[Any, DType], Any]] = {
    "float": _to_float, "integer": _to_integer, "bool": _to_bool, "string": to_bytes}


def _is_b64(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not _is_b64(value)
