"""Waiting: threads park, each on a lock of its own, and whoever changes something wakes them to look again.

No wake-up is lost, since a thread looks once more after it has said that it waits. The lock is one of the
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

SLICE = 0.5  # seconds: where a wait for a lock cannot be interrupted (Windows), Ctrl-C arrives between two slices


class Deadline:
    """`timeout` seconds from now; None is never."""

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else monotonic() + timeout

    def is_over(self) -> bool:
        return self._end is not None and monotonic() >= self._end

    def slice(self) -> float:
        """Seconds to wait before the next look at whether to go on."""
        return SLICE if self._end is None else max(0.0, min(SLICE, self._end - monotonic()))


class WaitingThreads:
    """Threads that wait until something has become true."""

    def __init__(self) -> None:
        self.locks: deque[Any] = deque()  # one a thread; released to wake it

    def wake(self) -> None:
        """Whoever waits now looks again. Does not block."""
        for _ in range(len(self.locks)):
            try:
                self.locks.popleft().release()
            except IndexError:
                return

    def wait_until(self, ready: Callable[[], Any], seconds: float) -> None:
        """Block until woken, at most `seconds`; not at all when it is ready."""
        lock = Lock()
        lock.acquire()
        self.locks.append(lock)
        try:
            if not ready():
                lock.acquire(timeout=seconds)
        finally:
            with suppress(ValueError):  # woken: it is out already
                self.locks.remove(lock)


class Countdown:
    """Counts values that are not available yet; `at_end()` is called, once or more, when all are."""

    def __init__(self, values: Iterable[AsyncValue], at_end: Callable[[], None]) -> None:
        pending = [value for value in values if not value.is_available()]
        self._left = deque([None] * len(pending))  # a number whose decrement is atomic
        self._at_end = at_end
        for value in pending:
            value.and_then(self._tick)

    def is_done(self) -> bool:
        return not self._left

    def _tick(self) -> None:
        self._left.pop()
        if not self._left:
            self._at_end()
