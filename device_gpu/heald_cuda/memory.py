"""Memory of a device: the driver's stream-ordered pool within config's limit, and buffers over memory of others."""

from __future__ import annotations

from threading import Lock
from typing import Any

from heald.api import errors

from .command_queue import Buffer, CommandQueue


class Memory:
    """Buffers for one queue. Memory is freed behind the enqueued work, so it may be freed at once."""

    def __init__(self, queue: CommandQueue, limit: int) -> None:
        self._queue = queue
        self._limit = limit
        self._lock = Lock()
        self._foreign: list[Buffer] = []  # freed buffers over memory of others, which enqueued work may still use
        self.used = 0  # bytes in buffers that are allocated and not yet freed
        self._left = 0  # bytes that the GPU had left when it refused some, until it gives some

    def allocate(self, nbytes: int) -> Buffer | None:
        self._queue.check()
        self._free_orphans()
        if not self._count(nbytes):
            return None
        try:
            pointer = self._queue.allocate(nbytes) or self._after_trim(nbytes)
        except BaseException:
            self._count(-nbytes)
            raise
        if not pointer:
            self._count(-nbytes)
            return None
        return Buffer(pointer, nbytes, self._queue)

    def adopt(self, pointer: int, nbytes: int, owner: Any) -> Buffer:
        """A buffer over memory of another library, whose work on it is ordered before the queue's. It does not count
        towards config's limit."""
        self._drop_foreign()
        return Buffer(pointer, nbytes, self._queue, owner)

    def free(self, buffer: Buffer) -> None:
        if buffer.owner is not None:
            with self._lock:
                self._foreign.append(buffer)
            self._drop_foreign()
            return
        if self._queue.captures:  # freed with the next allocation: a graph would free it in each replay
            self._queue.orphans.append((buffer.pointer, buffer.nbytes, buffer.copied))
            buffer.pointer = 0
            return
        self._queue.free(buffer)
        buffer.pointer = 0
        self._count(-buffer.nbytes)

    def figures(self) -> str:
        """The use of the memory, for errors: `3 of 10 bytes in use`."""
        left = f"; the GPU has {self._left} bytes left" if self._left else ""
        return f"{self.used} of {self._limit} bytes in use{left}"

    def close(self) -> None:
        self._foreign.clear()

    def _free_orphans(self) -> None:
        while self._queue.orphans:
            pointer, nbytes, copied = self._queue.orphans.popleft()
            buffer = Buffer(pointer, nbytes, self._queue)
            buffer.copied = copied
            self.free(buffer)

    def _after_trim(self, nbytes: int) -> int:
        left = self._queue.trim()
        pointer = self._queue.allocate(nbytes)
        self._left = 0 if pointer else left
        return pointer

    def _count(self, nbytes: int) -> bool:
        """Add to the bytes in use, unless that would pass the limit."""
        with self._lock:
            if nbytes > 0 and self.used + nbytes > self._limit:
                return False
            self.used += nbytes
            return True

    def _drop_foreign(self) -> None:
        with self._lock:
            self._foreign = [buffer for buffer in self._foreign if buffer.used > self._queue.done]


def allowance(memory: int | str, total: int) -> int:
    """The bytes that config's `memory` means on a GPU with `total` bytes. Raises InvalidArgument."""
    text = str(memory).strip()
    share = text.removesuffix("%").strip()
    if not share.isascii() or not share.isdigit() or int(share) == 0 or (text.endswith("%") and int(share) > 100):
        raise errors.InvalidArgument(f"[plugin.cuda] memory is {memory!r}",
                                     hint="write a share such as '80%', or a number of bytes")
    return total * int(share) // 100 if text.endswith("%") else int(share)
