"""Staging: pinned host memory through which copies between pageable arrays and a device go.

The driver copies pinned memory beside the host's work, and pageable memory not. An upload is moved into a block at
once. A download is moved out of its block when the host has waited for it.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque
from collections.abc import Callable
from threading import RLock
from typing import Any, NamedTuple

from . import driver
from .marks import Mark

BLOCK_BYTES = 4 << 20  # bytes that one block holds; longer copies go in pieces
SMALLEST = 4096
LARGEST_STAGED_BYTES = 64 << 20  # bytes of blocks in flight: the thread that needs more waits for the oldest transfer


class Block(NamedTuple):
    address: int
    nbytes: int


class Transfer(NamedTuple):
    """A piece of a copy in flight. `host`: the array that a download ends in, None for an upload."""

    number: int
    mark: Mark
    block: Block
    host: Any
    start: int
    nbytes: int


class Staging:
    """The blocks of one device, and its transfers in flight in the order of their numbers."""

    def __init__(self, wait: Callable[[Mark], None]) -> None:
        self.count = 0  # transfers so far
        self._wait = wait
        self._idle: defaultdict[int, list[Block]] = defaultdict(list)
        self._made: list[Block] = []
        self._in_flight = 0
        self._transfers: deque[Transfer] = deque()
        self._lock = RLock()

    def take(self, nbytes: int) -> Block:
        """A block of at least `nbytes` bytes. Waits for the oldest transfers while too many are in flight."""
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        with self._lock:
            while self._transfers and self._in_flight + size > LARGEST_STAGED_BYTES:
                self._wait(self._transfers[0].mark)
                self.land(self._transfers[0].number)
            self._in_flight += size
            if self._idle[size]:
                return self._idle[size].pop()
            block = Block(driver.allocate_host(size), size)
            self._made.append(block)
            return block

    def note_transfer(self, mark: Mark, block: Block, nbytes: int, host: Any = None, start: int = 0) -> None:
        """Note a transfer, which is over when the mark is reached."""
        with self._lock:
            self.count += 1
            self._transfers.append(Transfer(self.count, mark, block, host, start, nbytes))

    def land(self, until: int) -> None:
        """End the transfers up to this number, which the host has waited for: fill the arrays of downloads."""
        with self._lock:
            while self._transfers and self._transfers[0].number <= until:
                transfer = self._transfers.popleft()
                if transfer.host is not None:
                    move(address(transfer.host) + transfer.start, transfer.block.address, transfer.nbytes)
                self._idle[transfer.block.nbytes].append(transfer.block)
                self._in_flight -= transfer.block.nbytes

    def close(self) -> None:
        for block in self._made:
            driver.free_host(block.address)
        self._made.clear()
        self._idle.clear()

    def forked(self) -> None:
        self._lock = RLock()


move = ctypes.memmove  # without the GIL


def address(host: Any) -> int:
    return int(host.__array_interface__["data"][0])
