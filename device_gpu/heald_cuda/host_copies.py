"""Copies within host memory, by several threads: one thread reaches a small part of the memory's bandwidth."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

MOST_THREADS = 8
move = ctypes.memmove  # without the GIL


class HostCopies:
    """The threads that copy for one device. They start with the first copy.

    `threads`: 0 where a second thread has no processor; each copy is then done by its caller.
    """

    def __init__(self) -> None:
        processors = count_processors()
        self.threads = min(MOST_THREADS, processors) if processors > 1 else 0
        self._pool: ThreadPoolExecutor | None = None
        self._lock = Lock()

    def start(self, target: int, source: int, nbytes: int) -> Callable[[], object]:
        """Begin a copy between two addresses. Returns a function that waits for its end."""
        if not self.threads:
            move(target, source, nbytes)
            return nothing
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads, "heald-cuda-copy")
            try:
                return self._pool.submit(move, target, source, nbytes).result
            except RuntimeError:  # the interpreter ends, and starts no thread
                move(target, source, nbytes)
                return nothing

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def count_processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def nothing() -> None:
    pass
