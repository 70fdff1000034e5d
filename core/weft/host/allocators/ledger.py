"""The ledger: bytes and buffers that are out, their peak, and whether more may go out."""

from __future__ import annotations

import threading
from collections import deque

from ...contract.allocator import AllocatorStats
from ...errors import ResourceExhausted
from ...support.fork_safety import inherited


class Ledger:
    """Counts what goes out, up to `limit` bytes at a time, and what comes back."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._lock = threading.RLock()  # a finaliser that the collector runs in here may allocate
        self._in_use = self._peak = self._buffers = self._allocations = 0
        self._back: deque[int] = deque()  # not subtracted yet: who gives back never waits for the lock
        self.give_back = self._back.append
        inherited.add(self)

    def take(self, nbytes: int) -> None:
        """Raises ResourceExhausted when the limit would be passed."""
        if not self.try_take(nbytes):
            raise ResourceExhausted(f"no host memory for {nbytes} bytes: {self.in_use()} bytes are in use, "
                                    f"the limit is {self.limit} bytes", hint="raise [allocator] limit")

    def try_take(self, nbytes: int) -> bool:
        """Count `nbytes`; False, and nothing counted, when the limit would be passed."""
        with self._lock:
            if self._back:
                self._settle()
            in_use = self._in_use + nbytes
            if self.limit is not None and in_use > self.limit:
                return False
            self._in_use = in_use
            if in_use > self._peak:
                self._peak = in_use
            self._buffers += 1
            self._allocations += 1
        return True

    def in_use(self) -> int:
        """Bytes that are out."""
        with self._lock:
            self._settle()
            return self._in_use

    def stats(self) -> AllocatorStats:
        with self._lock:
            self._settle()
            figures = self._in_use, self._peak, self._buffers, self._allocations
        return AllocatorStats(*figures, limit=self.limit)

    def forked(self) -> None:
        self._lock = threading.RLock()  # at worst a buffer that another thread took or settled counts for ever

    def _settle(self) -> None:
        back = self._back
        while back:
            try:
                nbytes = back.popleft()
            except IndexError:  # such a finaliser settled what was left
                return
            self._in_use -= nbytes
            self._buffers -= 1
