"""The pooled allocator: blocks of a few sizes, which are lent again after they return.

A size is a power of two or one of three steps to the next, in whole lines of 64 bytes. So less than a fifth of a block
of more than 256 bytes is unused. Lending a block again takes no lock: a list adds or removes an entry in one step.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import numpy as np

from ....errors import ResourceExhausted
from ...contract.allocator import ALIGNMENT, AllocatorStats, HostAllocator, PlainAllocator
from ...support.aligned_array import BYTE, gap
from ...support.fork_safety import inherited
from .ledger import Ledger
from .loan import Block, Loans

LARGEST_IDLE_BYTES = 256 << 20


@lru_cache(4096)
def block_size(nbytes: int) -> int:
    """Bytes of the block that serves a request of `nbytes`."""
    step = max(ALIGNMENT, 1 << max((nbytes - 1).bit_length() - 3, 0))
    return max(-(-nbytes // step), 1) * step


class PooledAllocator:
    """Another allocator's memory, of which about `idle_limit` bytes are kept while unused.

    Its stats are of whole blocks; it counts neither allocations nor a peak.
    """

    def __init__(self, inner: HostAllocator | None = None, idle_limit: int = LARGEST_IDLE_BYTES) -> None:
        self._inner = PlainAllocator() if inner is None else inner
        self._idle_limit = idle_limit
        self._held = Ledger()  # lent or idle
        self._crowded = False  # True: more is held than may be idle, so each returning block is measured
        self._measuring = threading.RLock()
        self._free: dict[int, list[Any]] = {}  # by size: the block that returned last is lent first
        self._loans = Loans(self._take_back)
        self._kind = self._loans.kind
        inherited.add(self)

    def allocate(self, nbytes: int, alignment: int = ALIGNMENT) -> Any:
        """Like the protocol's method. Raises ResourceExhausted when there is no memory even after the idle blocks were
        released."""
        if alignment > ALIGNMENT:
            block = self._block(block_size(nbytes + alignment))
            return np.ndarray(nbytes, BYTE, block.view(self._kind), gap(block, alignment))
        return np.ndarray(nbytes, BYTE, self._block(block_size(nbytes)).view(self._kind))

    def deallocate(self, buffer: Any) -> None:
        self._loans.close(buffer)

    def trim(self) -> int:
        """Release the idle blocks to the inner allocator. Returns their bytes."""
        freed_bytes = 0
        for size, free in self._free.copy().items():
            while free:
                try:
                    block = free.pop()
                except IndexError:  # another thread was faster
                    break
                self._held.give_back(size)
                self._inner.deallocate(block.base)
                freed_bytes += size
        self._measure()
        return freed_bytes

    def stats(self) -> AllocatorStats:
        free = self._free.copy()
        inner_stats, idle = self._held.stats(), _bytes(free)
        assert inner_stats.in_use is not None
        assert inner_stats.buffers is not None
        buffers = inner_stats.buffers - sum(map(len, free.values()))
        return AllocatorStats(in_use=inner_stats.in_use - idle, buffers=buffers, idle=idle)

    def _block(self, size: int) -> Any:
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            pass
        try:
            memory = self._inner.allocate(size)
        except ResourceExhausted:
            if not self.trim():
                raise
            memory = self._inner.allocate(size)
        self._held.take(size)
        self._free.setdefault(size, [])
        self._measure()
        return memory.view(Block)

    def _measure(self) -> None:
        with self._measuring:
            self._crowded = self._held.in_use() > self._idle_limit

    def forked(self) -> None:
        self._measuring = threading.RLock()  # the next block measures again

    def _take_back(self, block: Any) -> None:
        size = block.size
        if self._crowded and _bytes(self._free.copy()) + size > self._idle_limit:
            self._held.give_back(size)
        else:
            self._free[size].append(block)


def _bytes(free: dict[int, list[Any]]) -> int:
    return sum([size * len(blocks) for size, blocks in free.items()])
