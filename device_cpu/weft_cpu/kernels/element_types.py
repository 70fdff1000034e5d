"""Groups of element types that the kernels' tables name, and how two-byte floats are computed with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from weft.api import DType, dtypes

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NARROW = ("float16", "bfloat16")
FLOATS = (*NARROW, "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMBERS = REAL + COMPLEX

Array = np.ndarray[Any, Any]


def zero(dtype: DType) -> Any:
    """What fills a tensor of this type where nothing else is: 0, or the empty text."""
    return b"" if dtype is dtypes.string else 0


def widened(function: Callable[[Array, Array], object]) -> Callable[[Array, Array], None]:
    """`function(x, out)`, which takes several steps, done in float32 for two-byte floats and rounded once."""

    def run(x: Array, out: Array) -> None:
        wide = x.astype(np.float32)
        function(wide, wide)
        out[...] = wide

    return run
