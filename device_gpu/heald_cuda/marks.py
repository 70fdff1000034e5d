"""Marks: points in the work of a stream, as events of the driver that are used again and again.

A mark may be dropped at any time, on any thread. Its event then serves a later mark. Waits that are enqueued already
keep their point: a wait is for the event's last record before it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from . import driver


class Mark:
    """A point behind all work that a stream had when the mark was made. `handle`: the driver's event."""

    __slots__ = ("_idle", "handle")

    def __init__(self, handle: int, idle: deque[int]) -> None:
        self.handle = handle
        self._idle = idle

    def __del__(self) -> None:
        self._idle.append(self.handle)  # and no call of the driver: a finalizer may run within one


class Event(NamedTuple):
    """A point behind all work of a device: a mark for each stream, the number of launches, and that of transfers."""

    marks: tuple[Mark, ...]
    position: int
    transfers: int


class Events:
    """The events of one device. Its context is the current one wherever a method is called."""

    def __init__(self) -> None:
        self._made: list[int] = []
        self._idle: deque[int] = deque()

    def mark(self, stream: int) -> Mark:
        """A mark behind all work that the stream has so far."""
        try:
            handle = self._idle.popleft()
        except IndexError:
            handle = driver.new_event()
            self._made.append(handle)
        mark = Mark(handle, self._idle)
        driver.record(handle, stream)
        return mark

    def close(self) -> None:
        for handle in self._made:
            driver.destroy("event", handle)
        self._made.clear()


class Lane:
    """A stream with its newest mark. `seen`: the launches that its work has waited for."""

    def __init__(self, events: Events) -> None:
        self.handle = driver.new_stream()
        self.seen = 0
        self._events = events
        self._newest: Mark | None = None
        self._is_behind = False

    def note_work(self) -> None:
        """Note that work was enqueued: the newest mark is not behind it."""
        self._is_behind = True

    def mark(self) -> Mark | None:
        """A mark behind all work so far; None if there was none."""
        if self._is_behind:
            self._newest = self._events.mark(self.handle)
            self._is_behind = False
        return self._newest
