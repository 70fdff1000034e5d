"""Groups of element types for the kernels' tables, and computation in float32 for two-byte floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, DType, dtypes

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NARROW = ("float16", "bfloat16")
FLOATS = (*NARROW, "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMBERS = REAL + COMPLEX
QUANTISED = ("qint8", "quint8", "qint16", "quint16", "qint32")

Array = np.ndarray[Any, Any]


def zero(dtype: DType) -> Any:
    """The fill value of a dtype: 0, or the empty string."""
    return b"" if dtype is dtypes.string else 0


def zeros(dtype: DType, shape: tuple[int, ...]) -> Array:
    """A tensor of the fill value."""
    if dtype.itemsize:
        return np.zeros(shape, dtype.numpy)
    return np.full(shape, zero(dtype), object)


def through_float32(function: Callable[..., object]) -> Callable[..., None]:
    """A form of `function(*inputs, out)` for two-byte floats of one shape: it computes in float32 and rounds once.
    `function` may overwrite its first input."""

    def run(*arrays: Array) -> None:
        wide = [x.astype(np.float32) for x in arrays[:-1]]
        function(*wide, wide[0])
        arrays[-1][...] = wide[0]

    return run


def attribute(b: Bind, name: str, dtype: DType) -> Array:
    """An attribute's number, rounded to float32 as attributes are, in this dtype."""
    return np.array(np.float32(b.attrs[name]), dtype.numpy)


def stepwise(function: Callable[..., object]) -> Callable[[Bind], Callable[..., object]]:
    """The bind function of `function(*inputs, out)`, which computes `through_float32` for two-byte floats."""
    wide = through_float32(function)
    return lambda b: wide if b.outputs[0].dtype.name in NARROW else function


def sortable(x: Array) -> Array:
    """`x` in a dtype that NumPy sorts with NaN at the end, which it does not do for bfloat16."""
    is_narrow = x.dtype.kind == "V" and x.dtype.name == "bfloat16"  # a name takes ten times as long as a kind
    return x.astype(np.float32) if is_narrow else x
