"""The guarded allocator: an access outside a buffer ends the process with a signal. Linux only.

    heald run model.pb --plugin fuzz/guarded.py --config guarded.toml

with `[allocator] name = "guarded"` in guarded.toml.

A buffer ends at a page without access, and begins after one. Its start is aligned, so up to 63 bytes of MARK may lie
between its end and that page. The memory is returned with the last array over it; a changed MARK then ends the process,
too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from mmap import PAGESIZE, mmap
from typing import Any

import numpy as np
from heald.api import AllocatorStats, FactoryRegistrar, HostAllocator, errors, hookimpl

HEALD_API = (1, 3)
MARK = 0xA5
NO_ACCESS = 0  # PROT_NONE of mman.h


@hookimpl
def heald_allocators(registry: FactoryRegistrar) -> None:
    registry.add("guarded", GuardedAllocator)


class GuardedAllocator(HostAllocator):
    """Each buffer lies between two pages without access."""

    keeps_apart = True

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise errors.Unavailable(f"guarded memory needs Linux, this is {sys.platform}")

    def allocate(self, nbytes: int, alignment: int = 64) -> Any:
        try:
            pages = _GuardedPages(-1, 2 * PAGESIZE + _round_up(nbytes, PAGESIZE) + max(alignment, PAGESIZE))
        except (OSError, OverflowError):
            raise errors.ResourceExhausted(f"the system has no memory for {nbytes} bytes") from None
        return pages.lend(nbytes, alignment)

    def deallocate(self, buffer: Any) -> None:
        pass  # arrays are counted: nothing to do

    def stats(self) -> AllocatorStats:
        return AllocatorStats()


class _GuardedPages(mmap):
    """Pages with a buffer between two pages without access. The last array over them drops them."""

    _rest = range(0)  # the bytes between the buffer and the page behind it

    def lend(self, nbytes: int, alignment: int) -> Any:
        """The buffer. Called once."""
        array: Any = np.frombuffer(self, np.uint8)
        base = array.ctypes.data
        first = _round_up(base + PAGESIZE, max(alignment, PAGESIZE)) - base
        end = first + _round_up(nbytes, PAGESIZE)
        for guard in (first - PAGESIZE, end):
            if _libc.mprotect(base + guard, PAGESIZE, NO_ACCESS):
                raise errors.ResourceExhausted("the system has no room for another page without access",
                                               hint="raise vm.max_map_count")
        start = end - _round_up(nbytes, alignment) if alignment <= PAGESIZE else first
        self._rest = range(start + nbytes, end)
        array[start + nbytes : end] = MARK
        return array[start : start + nbytes]

    def __del__(self) -> None:
        if any(self[at] != MARK for at in self._rest):
            print("guarded: the bytes behind a buffer were written", file=sys.stderr, flush=True)
            os.abort()


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
