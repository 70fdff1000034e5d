"""A host allocator of a third party: memory in whole pages, which drivers can map or pin.

    heald run model.pb --plugin examples/page_allocator.py --config pages.toml

with `[allocator] name = "pages"` in pages.toml.
"""

from __future__ import annotations

from mmap import mmap
from typing import Any

import numpy as np
from heald.api import AllocatorStats, FactoryRegistrar, HostAllocator, errors, hookimpl

HEALD_API = (1, 4)


@hookimpl
def heald_allocators(registry: FactoryRegistrar) -> None:
    registry.add("pages", PageAllocator)


class PageAllocator(HostAllocator):
    """Every buffer starts at a page of its own, and goes back to the system with the last array over it."""

    def allocate(self, nbytes: int, alignment: int = 64) -> Any:
        try:
            pages = np.frombuffer(mmap(-1, nbytes + alignment), np.uint8)
        except OSError:
            raise errors.ResourceExhausted(f"the system has no memory for {nbytes} bytes") from None
        start = -pages.ctypes.data % alignment  # 0, but for an alignment beyond the page
        return pages[start : start + nbytes]

    def deallocate(self, buffer: Any) -> None:
        pass  # arrays are counted: nothing to do

    def stats(self) -> AllocatorStats:
        return AllocatorStats()
