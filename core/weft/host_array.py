"""Payloads in host memory: NumPy arrays, C-contiguous and aligned."""

from __future__ import annotations

from typing import Any

import numpy as np

from .async_value import AsyncValue
from .errors import Internal
from .tensor import TensorMetadata


def typed(buffer: Any, meta: TensorMetadata) -> Any:
    """The start of a byte buffer as an array of this static type and shape."""
    return buffer[: meta.nbytes].view(meta.dtype.numpy).reshape(meta.dims)


def view(array: Any, meta: TensorMetadata) -> Any:
    """The same elements with an alias's type and shape."""
    if array.dtype != meta.dtype.numpy:
        array = array.view(meta.dtype.numpy)
    return array if array.shape == meta.shape else array.reshape(meta.dims)


def solid(array: Any) -> Any:
    """The array, C-contiguous and aligned: itself, or a copy (constants in a file are seldom aligned)."""
    return np.require(array, requirements=("C", "A"))


def returned(result: Any, count: int, op: str) -> list[Any]:
    """What a kernel returned, as contiguous arrays or AsyncValues. Raises Internal when it is not `count` values."""
    values = list(result) if isinstance(result, tuple | list) else [result]
    if len(values) != count or any(v is None for v in values):
        got = 0 if result is None else len(values)
        raise Internal(f"the kernel of {op} returned {got} values, expected {count}", op=op)
    return [v if isinstance(v, AsyncValue) else np.asarray(v, order="C") for v in values]
