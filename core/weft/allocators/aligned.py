"""Aligned memory from NumPy's own allocator, and arrays over what an allocator gives."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..allocator import HostAllocator, PlainAllocator
from ..errors import ResourceExhausted

BYTE = np.dtype(np.uint8)

# A fifth of what array.ctypes.data takes.
_at = ctypes.c_char.from_buffer
_address = ctypes.addressof


def empty(nbytes: int, alignment: int) -> Any:
    """A new uint8 array that starts at a multiple of `alignment`. Raises ResourceExhausted."""
    try:
        memory: Any = np.empty(nbytes + alignment, BYTE)
    except (MemoryError, ValueError, OverflowError):  # the last two: more bytes than NumPy can count
        raise ResourceExhausted(f"the system has no memory for {nbytes} bytes") from None
    start = -_address(_at(memory)) % alignment
    return memory[start : start + nbytes]


def gap(memory: Any, alignment: int) -> int:
    """Bytes from the start of a writable array, which has some, to the next multiple of `alignment`."""
    return -_address(_at(memory)) % alignment


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
