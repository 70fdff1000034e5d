"""Tensor messages: tensors and errors as bytes. heald adds no pickle.

A message is a list of byte arrays: first a JSON header with a row for each tensor, then the elements of each tensor. A
numeric tensor's elements are its own memory. A string tensor's are its texts, one behind the other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from heald import errors
from heald.errors import DataLoss, HealdError, Internal
from heald.runtime.values import dtypes

Message = list[Any]  # bytes, and NumPy arrays of bytes
_PLACES = ("node", "op", "device", "plugin")


def pack_tensors(tensors: Sequence[Any]) -> Message:
    """Return the message of these arrays; None stands for a dead tensor."""
    rows: list[Any] = []
    parts: list[Any] = []
    for tensor in tensors:
        if tensor is None:
            rows.append(None)
            parts.append(b"")
            continue
        array = np.asarray(tensor)
        dtype = dtypes.of_numpy(array.dtype)
        if dtype.name == "string":
            texts = [text if isinstance(text, bytes) else str(text).encode() for text in array.ravel().tolist()]
            rows.append([dtype.name, array.shape, [len(text) for text in texts]])
            parts.append(b"".join(texts))
        else:
            rows.append([dtype.name, array.shape, None])
            parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return [json.dumps(rows).encode(), *parts]


def unpack_tensors(message: Message) -> list[Any]:
    """Return the arrays of a message. Raises DataLoss for bytes that are no message."""
    try:
        rows = json.loads(message[0])
        return [_tensor(row, part) for row, part in zip(rows, message[1:], strict=True)]
    except (ValueError, TypeError, IndexError, LookupError) as error:
        raise DataLoss(f"a message between workers is damaged: {error}") from None


def _tensor(row: Any, part: Any) -> Any:
    if row is None:
        return None
    name, shape, sizes = row
    if sizes is None:
        return np.frombuffer(part, np.uint8).view(dtypes.named(name).numpy).reshape(shape)
    array = np.empty(len(sizes), object)
    data, start = bytes(part), 0
    for index, size in enumerate(sizes):
        array[index] = data[start:start + size]
        start += size
    return array.reshape(shape)


def pack_error(error: HealdError) -> bytes:
    places = {name: getattr(error, name) for name in _PLACES}
    return json.dumps([type(error).__name__, error.message, places, error.hint]).encode()


def unpack_error(data: bytes) -> HealdError:
    """Return the error of a worker. A class that heald lacks becomes Internal."""
    name, message, places, hint = json.loads(data)
    kind = getattr(errors, name, Internal)
    is_error = isinstance(kind, type) and issubclass(kind, HealdError)
    error: HealdError = (kind if is_error else Internal)(message, hint=hint, **places)
    return error
