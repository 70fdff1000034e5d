"""Cache of bound calls for later runs, bounded by bytes. The oldest calls are forgotten first.

The bytes are estimates: CALL_BYTES of Python objects per call, plus the `nbytes` of its bound kernel.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any, Protocol

from ..support.fork_safety import inherited

LARGEST_CACHE_BYTES = 32 << 20
CALL_BYTES = 4 << 10


class Owner(Protocol):
    """A call that is bound once for each combination of input shapes, and holds the bound calls."""

    def forget(self, key: Any) -> None:
        """Drop the bound call of this combination, if it is kept. Called from any thread."""


class BoundCalls:
    """The calls of one host that were bound while they ran. Any thread may call."""

    def __init__(self, limit_bytes: int = LARGEST_CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.RLock()
        self._kept: deque[tuple[weakref.ref[Owner], Any, int]] = deque()
        self.nbytes = 0
        inherited.add(self)

    def keep(self, owner: Owner, key: Any, nbytes: int) -> None:
        """Note a bound call that `owner` keeps under `key`. The oldest calls are forgotten when the bound is
        exceeded."""
        with self._lock:
            self._kept.append((weakref.ref(owner), key, nbytes))
            self.nbytes += nbytes
            if self.nbytes > self._limit_bytes:
                self._evict_oldest()

    def forked(self) -> None:
        self._lock = threading.RLock()

    def _evict_oldest(self) -> None:
        """Drop the calls whose owners are gone, then the oldest until an eighth of the bound is free. So the next calls
        have room."""
        self._kept = deque(entry for entry in self._kept if entry[0]() is not None)
        self.nbytes = sum(nbytes for _, _, nbytes in self._kept)
        while self.nbytes > self._limit_bytes * 7 // 8 and len(self._kept) > 1:
            ref, key, nbytes = self._kept.popleft()
            self.nbytes -= nbytes
            owner = ref()
            if owner is not None:
                owner.forget(key)


def bytes_of_call(bound: Any) -> int:
    """The approximate bytes of a bound call."""
    return CALL_BYTES + int(getattr(bound, "nbytes", 0))
