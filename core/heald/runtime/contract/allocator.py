"""Host memory: the protocol of allocators, and the plain allocator.

A buffer is a one-dimensional uint8 array that starts at a multiple of 64 bytes, so that vector code reads whole lines.
A buffer returns to its allocator once: when it is deallocated, or when the last array over it is gone. Results are
arrays over buffers; their owners deallocate nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from ..support.records import NamedTuple

ALIGNMENT = 64
LARGE_PAGE = 1 << 21  # bytes; memory that starts at a multiple can use the large pages of x86-64 and ARM


class AllocatorStats(NamedTuple):
    """The figures of an allocator; None stands for a figure that the allocator does not count.

    `in_use`: Bytes of the buffers that have not returned yet.
    `peak`: The largest `in_use` so far, in bytes.
    `buffers`: The number of buffers that have not returned yet.
    `allocations`: The number of allocations so far.
    `idle`: Bytes that the allocator keeps for reuse.
    `limit`: The largest `in_use` that the allocator permits, in bytes.
    """

    in_use: int | None = None
    peak: int | None = None
    buffers: int | None = None
    allocations: int | None = None
    idle: int | None = None
    limit: int | None = None


class HostAllocator(Protocol):
    """Allocates and takes back host buffers. Any thread may call any method."""

    @abstractmethod
    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        """Return a writable uint8 array of `nbytes` elements that starts at a multiple of `alignment`, a power of two.
        Raises ResourceExhausted when there is no memory or a limit would be passed."""

    @abstractmethod
    def deallocate(self, buffer: Any) -> None:
        """Take back an array that `allocate` returned. The caller must not read or write any array over it afterwards.
        A second call for one buffer does nothing."""

    @abstractmethod
    def stats(self) -> AllocatorStats:
        """The current figures."""

    # Optional attribute:
    #
    #     keeps_apart: bool
    #         """True when each slot of a frame's memory plan gets a buffer of its own. By default the slots are parts
    #         of one buffer."""


class PlainAllocator:
    """Aligned memory of NumPy's own allocator. The memory is freed when the last array over it is gone."""

    def __init__(self) -> None:
        self._empty: Callable[[int, int], Any] | None = None

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        if self._empty is None:
            from ..support.aligned_array import empty  # imported late: listing allocators needs no NumPy

            self._empty = empty
        return self._empty(nbytes, alignment)

    def deallocate(self, buffer: Any) -> None:
        del buffer  # nothing to do: NumPy frees the memory with its last array

    def stats(self) -> AllocatorStats:
        return AllocatorStats()
