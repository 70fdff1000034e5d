"""Waiting: each waiting thread parks on a lock of its own. A thread that changes the awaited state wakes the others to
look again.

No wake-up is lost, since a thread looks once more after it has registered as waiting. The lock is one of the
interpreter's own: Ctrl-C ends a wait for it, and nothing is held while a thread waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock
from time import monotonic
from typing import Any

from ...values.async_value import AsyncValue

WAIT_SLICE_SECONDS = 0.5  # seconds; on Windows a wait for a lock cannot be interrupted: Ctrl-C arrives between slices


class Deadline:
    """The time `timeout` seconds from now; None is never."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else monotonic() + timeout

    def is_over(self) -> bool:
        return self._end is not None and monotonic() >= self._end

    def slice(self) -> float:
        """Seconds to wait before the next test of the awaited condition."""
        return WAIT_SLICE_SECONDS if self._end is None else max(0.0, min(WAIT_SLICE_SECONDS, self._end - monotonic()))


class WaitingThreads:
    """The threads that wait until a condition has become true."""

    def __init__(self) -> None:
        self.locks: deque[Any] = deque()  # one per waiting thread, released to wake it

    def wake(self) -> None:
        """Have every waiting thread test its condition again. Does not block."""
        for _ in range(len(self.locks)):
            try:
                self.locks.popleft().release()
            except IndexError:
                return

    def wait_until(self, ready: Callable[[], Any], seconds: float) -> None:
        """Block until woken, at most `seconds`. Returns at once when `ready()` is true."""
        lock = Lock()
        lock.acquire()
        self.locks.append(lock)
        try:
            if not ready():
                lock.acquire(timeout=seconds)
        finally:
            with suppress(ValueError):  # a wake-up removed it already
                self.locks.remove(lock)


class Countdown:
    """Counts the values that are not available yet. `at_end()` is called, once or more, when all are available."""

    def __init__(self, values: Iterable[AsyncValue], at_end: Callable[[], None]) -> None:
        pending = [value for value in values if not value.is_available()]
        self._left = deque([None] * len(pending))  # a counter whose decrement is atomic
        self._at_end = at_end
        for value in pending:
            value.and_then(self._tick)

    def is_done(self) -> bool:
        return not self._left

    def _tick(self) -> None:
        self._left.pop()
        if not self._left:
            self._at_end()
