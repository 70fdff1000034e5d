"""Tensors to JSON, with the numbers of TensorFlow Serving.

A float is written by %g where that reads back equal, else by %.9g (float) or %.17g (double); `.0` is added where there
is neither a point nor an exponent. Arrays are formatted whole, by one format string, and not element by element.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from struct import pack, unpack
from typing import Any

import numpy as np
from heald.api import dtypes
from heald.errors import InvalidArgument

Arrays = Mapping[str, Any]
_DIGITS = {np.dtype(np.float32): 9, np.dtype(np.float64): 17}
_SPECIAL = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def rows_body(outputs: Arrays) -> bytes:
    """The body of an answer in the row form. Raises InvalidArgument for outputs without a common batch."""
    size = _batch_size(outputs)
    columns = {name: _texts(name, array) for name, array in outputs.items()}
    if len(columns) == 1:
        (rows,) = columns.values()
    else:
        keys = [_string(name) for name in columns]
        rows = [_join_members(f"{key}: {text}" for key, text in zip(keys, texts, strict=True))
                for texts in zip(*columns.values(), strict=True)]
    return _encode(f'{{"predictions": [{", ".join(rows[:size])}]}}')


def columns_body(outputs: Arrays) -> bytes:
    """The body of an answer in the column form."""
    columns = {name: _whole_text(name, array) for name, array in outputs.items()}
    if len(columns) == 1:
        (text,) = columns.values()
    else:
        text = _join_members(f"{_string(name)}: {column}" for name, column in columns.items())
    return _encode(f'{{"outputs": {text}}}')


def _join_members(members: Iterable[str]) -> str:
    return f"{{{', '.join(members)}}}"


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")  # bytes that are no UTF-8 leave as they came


def _batch_size(outputs: Arrays) -> int:
    size: int | None = None
    for name, array in outputs.items():
        if np.ndim(array) == 0:
            raise InvalidArgument(f"Tensor name: {name} has no shape information ")
        if size is not None and len(array) != size:
            raise InvalidArgument(f"Tensor name: {name} has inconsistent batch size: {len(array)} expecting: {size}")
        size = len(array)
    return size or 0


def _texts(name: str, array: Any) -> list[str]:
    """The texts of the rows of an array."""
    array = np.asarray(array)
    elements = _element_texts(name, array)
    return _nest(elements, array.shape, 1) if array.ndim > 1 else elements


def _whole_text(name: str, array: Any) -> str:
    array = np.asarray(array)
    (text,) = _nest(_element_texts(name, array), array.shape, 0)
    return text


def _nest(texts: list[str], shape: Sequence[int], depth: int) -> list[str]:
    """Join the texts of elements into lists, from the innermost dimension outwards to `depth`."""
    for at in range(len(shape) - 1, depth - 1, -1):
        length = shape[at]
        count = prod(shape[:at])
        texts = [f"[{', '.join(texts[row * length : (row + 1) * length])}]" for row in range(count)]
    return texts


def _element_texts(name: str, array: Any) -> list[str]:
    """The texts of all elements, flat. Raises InvalidArgument for an element type that JSON cannot hold."""
    flat = array.reshape(-1)
    kind = array.dtype.kind
    if array.dtype in _DIGITS:
        return float_texts(flat)
    if kind in "iu" and array.dtype.fields is None and array.dtype.names is None and array.dtype.isbuiltin:
        return list(map(str, flat.tolist()))
    if kind == "b":
        return ["true" if element else "false" for element in flat.tolist()]
    if kind == "O":
        write = _b64 if name.endswith("_bytes") else string_text
        return [write(element) for element in flat.tolist()]
    raise InvalidArgument(f"Failed to write JSON value for tensor type: {_type_name(array.dtype)}")


def _type_name(dtype: Any) -> str:
    try:
        return dtypes.of_numpy(dtype).tf_name
    except Exception:  # noqa: BLE001 - a type of NumPy alone has its own name
        return str(dtype)


def float_texts(flat: Any) -> list[str]:
    """The numbers of a flat array of float32 or float64 as texts."""
    if not flat.size:
        return []
    values = tuple(flat.tolist())
    texts = ("%g " * len(values) % values).split()
    numbers: tuple[float, ...] = tuple(map(float, texts))
    if flat.dtype == np.float32:
        form = f"{len(values)}f"
        numbers = unpack(form, pack(form, *numbers))
    if numbers != values:
        exact = (f"%.{_DIGITS[flat.dtype]}g " * len(values) % values).split()
        texts = [text if number == value else exact_text
                 for text, number, value, exact_text in zip(texts, numbers, values, exact, strict=True)]
    return [text if "." in text or "e" in text else _SPECIAL.get(text, f"{text}.0") for text in texts]


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def string_text(element: Any) -> str:
    """The bytes of a string as JSON, as they are."""
    return _string(element.decode("utf-8", "surrogateescape") if isinstance(element, bytes) else str(element))


def _b64(element: Any) -> str:
    data = element if isinstance(element, bytes) else str(element).encode()
    return f'{{"b64": "{base64.b64encode(data).decode()}"}}'
