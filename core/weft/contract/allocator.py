"""Host memory: the allocator protocol, and the plain allocator.

A buffer is a one-dimensional uint8 array that starts at a multiple of 64 bytes, so that vector code reads whole lines.
It goes back to its allocator once: when it is deallocated, or when the last array over it is gone. Results are arrays
over buffers, and whoever has them deallocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

ALIGNMENT = 64
LARGE_PAGE = 1 << 21  # what starts at a multiple of it can be in large pages, which x86-64 and ARM have of this size


class AllocatorStats(NamedTuple):
    """What an allocator counts; None stands for what it does not.

    Bytes: `in_use` by buffers that are not back yet, `peak` of these so far, `idle` (kept for reuse), `limit` of
    in_use. `buffers` that are not back yet, `allocations` so far.
    """

    in_use: int | None = None
    peak: int | None = None
    buffers: int | None = None
    allocations: int | None = None
    idle: int | None = None
    limit: int | None = None


class HostAllocator(Protocol):
    """Gives and takes back host buffers. May be called from any thread."""

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        """A writable uint8 array of `nbytes`; `alignment` is a power of two. Raises ResourceExhausted."""

    def deallocate(self, buffer: Any) -> None:
        """Takes back what allocate returned: no array over it is read or written any more. Again, it does nothing."""

    def stats(self) -> AllocatorStats:
        """What it counts, now."""


class PlainAllocator:
    """Memory of NumPy's own allocator, aligned; returned to it when the last array over it is gone."""

    def __init__(self) -> None:
        self._empty: Callable[[int, int], Any] | None = None

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        if self._empty is None:
            from ..support.aligned_array import empty  # whoever only lists allocators needs no NumPy

            self._empty = empty
        return self._empty(nbytes, alignment)

    def deallocate(self, buffer: Any) -> None:
        del buffer  # arrays are counted: nothing to do

    def stats(self) -> AllocatorStats:
        return AllocatorStats()
