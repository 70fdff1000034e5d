"""CancelToken: the request of a caller to end runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from ..support.fork_safety import inherited
from ..support.unraisable import report_unraisable


class CancelToken:
    """A token that a caller passes to runs, and may cancel from any thread, any number of times."""

    # The token takes no lock, because signal handlers and finalizers may cancel. `on_cancel` stores its callback and
    # then reads `is_cancelled`. `cancel` sets `is_cancelled` and then reads the callbacks. So at least one of the two
    # sees the other, and the one that removes the callback from the dict calls it.

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], Any]] = {}
        self._numbers = count(1)
        self.is_cancelled = False
        inherited.add(self)

    def cancel(self) -> None:
        """Cancel every run that has this token, and every run that receives it later."""
        self.is_cancelled = True
        for number in list(self._callbacks):
            self._call(number)

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Register a callback for the cancellation; it is called at once when the token is cancelled already. Returns a
        handle for `forget`."""
        number = next(self._numbers)
        self._callbacks[number] = callback
        if self.is_cancelled:
            self._call(number)
        return number

    def forget(self, handle: int) -> None:
        self._callbacks.pop(handle, None)

    def forked(self) -> None:
        self._callbacks.clear()  # the threads of these runs do not exist in the child, and may have held locks

    def _call(self, number: int) -> None:
        callback = self._callbacks.pop(number, None)
        if callback is None:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - the other callbacks have other owners
            report_unraisable(error, "a callback of a CancelToken", callback)
