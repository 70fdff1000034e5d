"""CancelToken: a request to end runs, given by their caller."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from ..support.fork_safety import inherited


class CancelToken:
    """Given to runs by their caller, who may cancel them from any thread, as often as he likes."""

    # Takes no lock: signal handlers and finalisers may cancel. Whoever stores a callback looks at `is_cancelled` after
    # that, whoever cancels looks at the callbacks after he has set it: one of them sees the other at least, and who
    # gets the callback out of the dict calls it.

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], Any]] = {}
        self._numbers = count(1)
        self.is_cancelled = False
        inherited.add(self)

    def cancel(self) -> None:
        """Cancel every run that has this token, and those that will be given it."""
        self.is_cancelled = True
        for number in list(self._callbacks):
            self._call(number)

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Call back when it is cancelled, at once if it is; gives a number for `forget`."""
        number = next(self._numbers)
        self._callbacks[number] = callback
        if self.is_cancelled:
            self._call(number)
        return number

    def forget(self, number: int) -> None:
        self._callbacks.pop(number, None)

    def forked(self) -> None:
        self._callbacks.clear()  # those of runs whose threads are not here, and which may have locked something

    def _call(self, number: int) -> None:
        callback = self._callbacks.pop(number, None)
        if callback is not None:
            callback()
