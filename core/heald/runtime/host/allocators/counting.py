"""The counting allocator: the buffers in use, their callers, and the peak. For finding leaks."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, NamedTuple

from ...contract.allocator import ALIGNMENT, AllocatorStats, HostAllocator, PlainAllocator
from .ledger import Ledger
from .loan import Loans

Caller = tuple[int, CodeType, int]  # bytes, and the code and line of the request


class Leak(NamedTuple):
    """A buffer that has not returned: its bytes, and the "file:line in function" of its request."""

    nbytes: int
    where: str


class CountingAllocator:
    """Counts another allocator's buffers and records their callers."""

    def __init__(self, inner: HostAllocator | None = None) -> None:
        self._inner = PlainAllocator() if inner is None else inner
        ledger = self._ledger = Ledger()
        live: dict[int, Caller] = {}  # by id of the memory, which outlives the loan
        self._live = live
        self._loans = Loans(lambda block: ledger.give_back(live.pop(id(block.base))[0]))

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        memory = self._inner.allocate(nbytes, alignment)
        self._live[id(memory)] = nbytes, *_caller()
        self._ledger.take(nbytes)
        return self._loans.lend(memory)

    def deallocate(self, buffer: Any) -> None:
        self._loans.give_back(buffer, self._inner)

    def stats(self) -> AllocatorStats:
        inner = self._inner.stats()
        return self._ledger.stats()._replace(idle=inner.idle, limit=inner.limit)

    def leaks(self) -> list[Leak]:
        """The buffers that have not returned yet, the oldest first."""
        live = list(self._live.values())
        return [Leak(n, f"{code.co_filename}:{line} in {code.co_qualname}") for n, code, line in live]


def _caller() -> tuple[CodeType, int]:
    """The code and line of the request: the first frame outside this package."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    return frame.f_code, frame.f_lineno
