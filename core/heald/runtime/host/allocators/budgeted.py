"""The budgeted allocator: a limit on the bytes in use, reached before the system itself is short of memory."""

from __future__ import annotations

from typing import Any

from ...contract.allocator import ALIGNMENT, AllocatorStats, HostAllocator, PlainAllocator
from .ledger import Ledger
from .loan import Loans


class BudgetedAllocator:
    """At most `limit` bytes of another allocator's buffers at a time. Bytes count as requested: the inner allocator's
    rounding and idle memory are not counted."""

    def __init__(self, limit: int, inner: HostAllocator | None = None) -> None:
        self._inner = PlainAllocator() if inner is None else inner
        ledger = self._ledger = Ledger(limit)
        self._loans = Loans(lambda block: ledger.give_back(block.size))

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        """Like the protocol's method. Raises ResourceExhausted, with the requested bytes, the bytes in use and the
        limit."""
        self._ledger.take(nbytes)
        try:
            memory = self._inner.allocate(nbytes, alignment)
        except BaseException:
            self._ledger.give_back(nbytes)
            raise
        return self._loans.lend(memory)

    def deallocate(self, buffer: Any) -> None:
        self._loans.give_back(buffer, self._inner)

    def stats(self) -> AllocatorStats:
        return self._ledger.stats()._replace(idle=self._inner.stats().idle)
