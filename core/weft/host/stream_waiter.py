"""The waiter of a device: the one thread that waits for its events, in order, and says so to those who go on then.

Whoever runs a step enqueues and goes on. What leaves the device is a value that comes when the waiter has seen the
event behind it. After an error of the device, all that leaves it later has that error.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from ..contract.device import STREAM, Device, Event
from ..errors import FailedPrecondition, WeftError
from ..support.fork_safety import inherited
from ..support.kernel_errors import as_weft_error
from ..values.async_value import AsyncValue
from .kernel_context import KernelContext

Done = Callable[[WeftError | None], None]


class StreamWaiter:
    """For one device, which has one stream. Its thread starts with the first event and ends with `close`."""

    def __init__(self, device: Device, name: str) -> None:
        self._device = device
        self._name = name
        self._events: SimpleQueue[tuple[Event, Done] | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_forked = False
        self._end = weakref.finalize(self, self._events.put, None)
        inherited.add(self)

    def leave(self, buffer: Any, array: Any) -> AsyncValue:
        """Enqueue a copy out of a buffer: the array, when it is there."""
        self._device.copy_out(buffer, array, STREAM)
        return self.reach(array)

    def reach(self, payload: Any = None) -> AsyncValue:
        """The payload, when the device has done everything that was enqueued so far."""
        value = AsyncValue()

        def done(error: WeftError | None) -> None:
            if error is None:
                value.emplace(payload)
            else:
                value.set_error(error)

        self._when_done(done)
        return value

    def keep(self, *things: Any) -> None:
        """Keep what the device may still read or write until it has done everything that was enqueued so far."""
        self._when_done(partial(_drop, things))

    def close(self) -> None:
        self._end()

    def forked(self) -> None:
        self._is_forked = True

    def _when_done(self, done: Done) -> None:
        if self._is_forked:
            raise FailedPrecondition(f"device {self._name} belongs to the process that forked this one",
                                     device=self._name, hint="open a session of the child's own")
        self._events.put((self._device.record(STREAM), done))
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    # A device may compute with NumPy, and when it is waited for.
                    self._thread = threading.Thread(
                        target=KernelContext().run, args=(_wait, self._device, self._name, self._events),
                        name=f"weft-waiter-{self._name}", daemon=True)
                    self._thread.start()


def _drop(_things: tuple[Any, ...], _error: WeftError | None) -> None:
    """What was kept may go."""


def _wait(device: Device, name: str, events: SimpleQueue[tuple[Event, Done] | None]) -> None:
    while (next_one := events.get()) is not None:
        event, done = next_one
        error = None
        try:
            device.synchronize(event)
        except BaseException as raised:  # noqa: BLE001 - a device may raise anything; it becomes what leaves it
            error = as_weft_error(raised, f"device {name}").at(device=name)
        done(error)
        del next_one, event, done, error
