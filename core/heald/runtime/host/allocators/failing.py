"""The failing allocator: one request fails, for tests of the consequences."""

from __future__ import annotations

from itertools import count
from typing import Any

from ....errors import ResourceExhausted
from ...contract.allocator import ALIGNMENT, AllocatorStats, HostAllocator, PlainAllocator


class FailingAllocator:
    """Another allocator, whose `nth` request from now on, counted from 1, finds no memory."""

    def __init__(self, nth: int, inner: HostAllocator | None = None) -> None:
        self._nth = nth
        self._inner = PlainAllocator() if inner is None else inner
        self._requests = count(1)

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        """Raises ResourceExhausted in the n-th request, else as the inner allocator."""
        if next(self._requests) == self._nth:
            raise ResourceExhausted(f"no host memory for {nbytes} bytes: request {self._nth} is made to fail")
        return self._inner.allocate(nbytes, alignment)

    def deallocate(self, buffer: Any) -> None:
        self._inner.deallocate(buffer)

    def stats(self) -> AllocatorStats:
        return self._inner.stats()
