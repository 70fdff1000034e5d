"""StreamWaiter: the one thread that waits for a device's events, in order, and makes values available.

The thread that runs a step enqueues work and goes on. A value that leaves the device is an AsyncValue; it becomes
available when the waiter has seen the event behind its copy. An error that the device raises at that event becomes the
value's error. A lost device raises its error for every later event, so all later values have it too.
"""

# The theory of the waiter
#
# A device has one stream, which works in order. So one thread serves all its events: while it waits for the first
# event, no later event can have come.
#
# Invariants
# - Values complete in the order in which their copies were enqueued. A value never becomes available before the device
#   has done all work that was enqueued before its event.
# - Each event completes its value exactly once: with the payload, or with the error that `synchronize` raised.
# - `keep` holds objects through the queue itself: the waiter drops its references behind their event.
# - The thread refers to the queue and the device, never to the StreamWaiter. The end of the StreamWaiter ends the
#   thread.
# - The thread keeps no reference between two events, so a value is not kept alive by an idle waiter.
# - A forked child has no such thread. Its waiters refuse all calls.
#
# Rule: callbacks run on this thread. A callback that waits for a later event of the same device waits for ever.

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from ...errors import HealdError
from ..contract.device import STREAM, Device, Event
from ..support.fork_safety import inherited
from ..values.async_value import AsyncValue
from .device_fault import device_fault
from .forked_devices import fork_error
from .kernel_context import KernelContext

Done = Callable[[HealdError | None], None]


class StreamWaiter:
    """The waiter of one device, which has one stream. The thread starts with the first event and ends with `close`."""

    def __init__(self, device: Device, name: str, plugin: str) -> None:
        self._device = device
        self._name = name
        self._plugin = plugin
        self._events: SimpleQueue[tuple[Event, Done] | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_forked = False
        self._end = weakref.finalize(self, self._events.put, None)
        inherited.add(self)

    def leave(self, buffer: Any, array: Any) -> AsyncValue:
        """Enqueue a copy of the buffer into the array. Returns an AsyncValue of the array, available when the copy is
        complete."""
        self._check()
        self._device.copy_out(buffer, array, STREAM)
        return self.reach(array)

    def reach(self, payload: Any = None) -> AsyncValue:
        """Return an AsyncValue of the payload, available when the device has done all work that is enqueued so far."""
        value = AsyncValue()

        def done(error: HealdError | None) -> None:
            if error is None:
                value.emplace(payload)
            else:
                value.set_error(error)

        self._when_done(done)
        return value

    def keep(self, *things: Any) -> None:
        """Keep objects that the device may still read or write alive until it has done all work that is enqueued so
        far."""
        self._when_done(partial(_drop, things))

    def close(self) -> None:
        self._end()

    def forked(self) -> None:
        self._is_forked = True

    def _check(self) -> None:
        if self._is_forked:
            raise fork_error(self._name)

    def _when_done(self, done: Done) -> None:
        self._check()
        self._events.put((self._device.record(STREAM), done))
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    # A kernel context, because a device may compute with NumPy, and may do so within `synchronize`.
                    self._thread = threading.Thread(
                        target=KernelContext().run, args=(_wait, self._device, self._name, self._plugin, self._events),
                        name=f"heald-waiter-{self._name}", daemon=True)
                    self._thread.start()


def _drop(_things: tuple[Any, ...], _error: HealdError | None) -> None:
    """Do nothing: the caller's reference to the kept objects was the last one."""


def _wait(device: Device, name: str, plugin: str, events: SimpleQueue[tuple[Event, Done] | None]) -> None:
    while (next_one := events.get()) is not None:
        event, done = next_one
        error = None
        try:
            device.synchronize(event)
        except BaseException as raised:  # noqa: BLE001 - any exception of a device becomes the error of the value
            error = device_fault(raised, device, name, plugin, is_of_step=True)
        done(error)
        del next_one, event, done, error
