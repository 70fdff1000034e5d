"""Typed arrays in the memory of a host allocator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...contract.allocator import HostAllocator, PlainAllocator


def array_maker(allocator: HostAllocator, shape: tuple[int, ...], dtype: Any) -> Callable[[], Any]:
    """Return a function that makes uninitialised arrays of this type and shape, in the allocator's memory.

    The function raises as `allocate`. Arrays of Python objects are NumPy's own: only NumPy knows when the objects end.
    """
    dtype = np.dtype(dtype)
    if type(allocator) is PlainAllocator or dtype.hasobject:
        return partial(np.empty, shape, dtype)
    array, allocate, nbytes = np.ndarray, allocator.allocate, bytes_of(shape, dtype)
    return lambda: array(shape, dtype, allocate(nbytes))


def bytes_of(shape: tuple[int, ...], dtype: Any) -> int:
    """Bytes of an array. For Python objects only their references count."""
    return prod(shape) * int(np.dtype(dtype).itemsize)
