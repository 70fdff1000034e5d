"""Aligned memory from NumPy's own allocator, and arrays that kernels may read in place."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

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


def solid(array: Any) -> Any:
    """The array, C-contiguous and aligned: itself, or a copy (constants in a file are seldom aligned)."""
    return array if is_solid(array) else np.require(array, requirements=("C", "A"))


def is_solid(array: Any) -> bool:
    """True for an array that kernels may read as it is."""
    flags = array.flags
    return bool(flags.c_contiguous and flags.aligned)
