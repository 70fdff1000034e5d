"""The ledger: the count of lent bytes and buffers, their peak, and their limit."""

from __future__ import annotations

import threading
from collections import deque

from ....errors import ResourceExhausted
from ...contract.allocator import AllocatorStats
from ...support.fork_safety import inherited


class Ledger:
    """Counts lent bytes, up to `limit` at a time, and returned bytes."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._lock = threading.RLock()  # reentrant: a finalizer that the collector runs in here may allocate
        self._in_use = self._peak = self._buffers = self._allocations = 0
        self._back: deque[int] = deque()  # not subtracted yet: `give_back` never waits for the lock
        self.give_back = self._back.append
        inherited.add(self)

    def take(self, nbytes: int) -> None:
        """Count `nbytes`. Raises ResourceExhausted when the limit would be passed."""
        if not self.try_take(nbytes):
            raise ResourceExhausted(f"no host memory for {nbytes} bytes: {self.in_use()} bytes are in use, "
                                    f"the limit is {self.limit} bytes", hint="raise [allocator] limit")

    def try_take(self, nbytes: int) -> bool:
        """Count `nbytes`. Returns False, and counts nothing, when the limit would be passed."""
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
        """The bytes that are lent now."""
        with self._lock:
            self._settle()
            return self._in_use

    def stats(self) -> AllocatorStats:
        with self._lock:
            self._settle()
            figures = self._in_use, self._peak, self._buffers, self._allocations
        return AllocatorStats(*figures, limit=self.limit)

    def forked(self) -> None:
        self._lock = threading.RLock()  # at worst the child counts one buffer of another thread for ever

    def _settle(self) -> None:
        back = self._back
        while back:
            try:
                nbytes = back.popleft()
            except IndexError:  # a finalizer settled the rest
                return
            self._in_use -= nbytes
            self._buffers -= 1
