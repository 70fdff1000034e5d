"""Host memory: the allocator protocol, and the plain allocator.

Buffers are one-dimensional uint8 arrays that start at a multiple of 64 bytes, so that vector code reads whole lines.
"""

from __future__ import annotations

from typing import Any, Protocol

from .errors import ResourceExhausted

ALIGNMENT = 64


class HostAllocator(Protocol):
    """Gives and takes back host buffers. May be called from any thread."""

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        """A uint8 array of `nbytes`. Raises ResourceExhausted."""

    def deallocate(self, buffer: Any) -> None:
        """The caller will not use the buffer again."""


class PlainAllocator:
    """Memory of NumPy's own allocator, aligned; returned to it when the last array over it is gone."""

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        import numpy as np

        try:
            raw = np.empty(nbytes + alignment, np.uint8)
        except MemoryError:
            raise ResourceExhausted(f"no host memory for {nbytes} bytes") from None
        start = -raw.ctypes.data % alignment
        return raw[start : start + nbytes]

    def deallocate(self, buffer: Any) -> None:
        del buffer  # arrays are counted: nothing to do
