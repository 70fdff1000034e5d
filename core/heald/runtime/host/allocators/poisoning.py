"""The poisoning allocator: unwritten and returned memory has a pattern, which shows where it is read."""

from __future__ import annotations

from typing import Any

from ...contract.allocator import ALIGNMENT, AllocatorStats, HostAllocator, PlainAllocator
from .loan import Loans

POISON = 0xCB  # four of them are -26711958 as float32, -875836469 as int32


class PoisoningAllocator:
    """Fills another allocator's buffers with POISON when they are lent and when they return."""

    def __init__(self, inner: HostAllocator | None = None) -> None:
        self._inner = PlainAllocator() if inner is None else inner
        self._loans = Loans(poison)

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        memory = self._inner.allocate(nbytes, alignment)
        poison(memory)
        return self._loans.lend(memory)

    def deallocate(self, buffer: Any) -> None:
        self._loans.give_back(buffer, self._inner)

    def stats(self) -> AllocatorStats:
        return self._inner.stats()


def poison(memory: Any) -> None:
    memory.fill(POISON)
