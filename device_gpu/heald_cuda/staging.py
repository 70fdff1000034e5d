"""Staging: pinned host memory through which copies between pageable arrays and a device go.

The driver copies pinned memory beside the host's work, and pageable memory not. An upload is moved into a block at
once. A download is moved out of its block when the host has waited for it.
"""

# A long copy goes in pieces. Several threads move pieces while the driver copies earlier ones: an upload's pieces are
# enqueued in order as their moves end (`CommandQueue.write`), and a download's pieces are moved as the device has
# copied them (`CommandQueue.synchronize`). Downloads stay in their queue until they are moved: a second thread that
# waits for the same event finds them there, and waits for the moves. Transfers of one direction end in their order.
# An upload may end before an earlier download, and a download before an earlier upload.

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, NamedTuple

from . import driver
from .host_copies import HostCopies, move, nothing
from .marks import Mark

BLOCK_BYTES = 2 << 20  # bytes that one block holds; longer copies go in pieces
SMALLEST = 4096
LARGEST_STAGED_BYTES = 64 << 20  # bytes of blocks in flight: the thread that needs more waits for the oldest transfer
FEWEST_SHARED_BYTES = 4 << 20  # of a copy whose pieces several threads move


class Block(NamedTuple):
    address: int
    nbytes: int


@dataclass(slots=True)
class Transfer:
    """A piece of a copy in flight. `host`: the array that a download ends in, None for an upload.

    `wait_for_move`: waits until a download is in its array; None before its move begins.
    """

    number: int
    mark: Mark
    block: Block
    host: Any
    start: int
    nbytes: int
    wait_for_move: Callable[[], object] | None = None


class Staging:
    """The blocks of one device, and its transfers in flight in the order of their numbers."""

    def __init__(self, wait: Callable[[Mark], None]) -> None:
        self.count = 0  # transfers so far
        self.copies = HostCopies()
        self._wait = wait
        self._idle: defaultdict[int, list[Block]] = defaultdict(list)
        self._made: list[Block] = []
        self._in_flight = 0
        self._uploads: deque[Transfer] = deque()
        self._downloads: deque[Transfer] = deque()
        self._download_bytes = 0  # of the downloads in flight
        self._lock = RLock()

    @property
    def most_moves(self) -> int:
        """The pieces of an upload that are moved before the first of them is enqueued."""
        return max(1, min(self.copies.threads, LARGEST_STAGED_BYTES // BLOCK_BYTES // 2))

    def take(self, nbytes: int) -> Block:
        """A block of at least `nbytes` bytes. Waits for the oldest transfers while too many are in flight."""
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        with self._lock:
            while (self._uploads or self._downloads) and self._in_flight + size > LARGEST_STAGED_BYTES:
                oldest = min((lane[0] for lane in (self._uploads, self._downloads) if lane),
                             key=lambda transfer: transfer.number)
                self._wait(oldest.mark)
                self.land(oldest.number)
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
            lane = self._uploads if host is None else self._downloads
            self._download_bytes += nbytes if host is not None else 0
            lane.append(Transfer(self.count, mark, block, host, start, nbytes))

    def long_downloads(self, until: int) -> tuple[Transfer, ...]:
        """The downloads up to this number, where they are worth several threads."""
        if self._download_bytes < FEWEST_SHARED_BYTES or not self.copies.threads:
            return ()
        with self._lock:
            return tuple(transfer for transfer in self._downloads if transfer.number <= until)

    def begin_move(self, download: Transfer) -> None:
        """Begin to fill a part of an array, whose mark the host has waited for. Does nothing the second time."""
        with self._lock:
            if download.wait_for_move is None:
                download.wait_for_move = self.copies.start(*_move_of(download))

    def land(self, until: int) -> None:
        """End the transfers up to this number, which the host has waited for: fill the arrays of downloads."""
        with self._lock:
            while self._uploads and self._uploads[0].number <= until:
                self._give_back(self._uploads.popleft().block)
            while self._downloads and self._downloads[0].number <= until:
                download = self._downloads[0]
                if download.wait_for_move is None:
                    move(*_move_of(download))
                    download.wait_for_move = nothing
                download.wait_for_move()
                self._downloads.popleft()
                self._download_bytes -= download.nbytes
                self._give_back(download.block)

    def close(self) -> None:
        self.copies.close()
        for block in self._made:
            driver.free_host(block.address)
        self._made.clear()
        self._idle.clear()

    def forked(self) -> None:
        self._lock = RLock()

    def _give_back(self, block: Block) -> None:
        self._idle[block.nbytes].append(block)
        self._in_flight -= block.nbytes


def _move_of(download: Transfer) -> tuple[int, int, int]:
    """The target, the source and the length of a download's last part."""
    return address(download.host) + download.start, download.block.address, download.nbytes


def address(host: Any) -> int:
    return int(host.__array_interface__["data"][0])
