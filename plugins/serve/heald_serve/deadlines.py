"""Deadlines of many requests, kept by one thread: each calls a function at its time, unless it is dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from time import monotonic

Action = Callable[[], object]


class Deadlines:
    """The thread starts with the first deadline. Any thread may call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._heap: list[tuple[float, int]] = []
        self._actions: dict[int, Action] = {}
        self._numbers = count(1)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_ended = False

    def add(self, deadline: float, action: Action) -> int:
        """Call `action` at this time of `time.monotonic`. Returns a number for `drop`."""
        with self._changed:
            number = next(self._numbers)
            self._actions[number] = action
            heappush(self._heap, (deadline, number))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            if self._heap[0][1] == number:
                self._changed.notify()
            return number

    def drop(self, number: int) -> None:
        with self._changed:
            self._actions.pop(number, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._wait_for_next()
                if self._is_ended:
                    return
                _, number = heappop(self._heap)
                action = self._actions.pop(number, None)
            if action is not None:
                action()

    def _wait_for_next(self) -> None:
        while not self._is_ended:
            self._forget_dropped()
            seconds = self._heap[0][0] - monotonic() if self._heap else None
            if seconds is not None and seconds <= 0:
                return
            self._changed.wait(seconds)

    def _forget_dropped(self) -> None:
        """Remove dropped deadlines from the front, so that the heap does not grow with answered requests."""
        while self._heap and self._heap[0][1] not in self._actions:
            heappop(self._heap)
        if len(self._heap) > 2 * len(self._actions) + 16:
            self._heap = sorted(entry for entry in self._heap if entry[1] in self._actions)

    def close(self) -> None:
        with self._changed:
            self._is_ended = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
