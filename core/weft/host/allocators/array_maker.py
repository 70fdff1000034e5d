"""Arrays in memory that a host allocator provides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...contract.allocator import HostAllocator, PlainAllocator


def array_maker(allocator: HostAllocator, shape: tuple[int, ...], dtype: Any) -> Callable[[], Any]:
    """What makes arrays of this type and shape, uninitialised, in the allocator's memory.

    The call raises what allocate raises. Python objects are NumPy's: only it knows when they end.
    """
    dtype = np.dtype(dtype)
    if type(allocator) is PlainAllocator or dtype.hasobject:
        return partial(np.empty, shape, dtype)
    array, allocate, nbytes = np.ndarray, allocator.allocate, bytes_of(shape, dtype)
    return lambda: array(shape, dtype, allocate(nbytes))


def bytes_of(shape: tuple[int, ...], dtype: Any) -> int:
    """Bytes of an array; of Python objects only those of the references."""
    return prod(shape) * int(np.dtype(dtype).itemsize)
