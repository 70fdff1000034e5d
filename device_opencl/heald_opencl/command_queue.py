"""The queue of a device: commands run in order, and host memory is released once they are done with it.

A thread that waits for a command waits for the newest one, without the GIL. The events of copies are kept until the
copies are done: to drop one earlier would block, and to drop its array would let the driver write into memory of
others. The next wait or copy drops the finished ones. Drivers call back into no Python code.

A fault is permanent: later commands in the queue depend on the failed one.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import pyopencl as cl
from heald.api import Unavailable

LARGEST_UNFINISHED_COPIES = 256  # that may be unfinished: the thread that enqueues one more waits for the oldest
DONE = cl.command_execution_status.COMPLETE


class CommandQueue:
    """The in-order queue of a device. `handle` is pyopencl's queue; commands reach it through `enqueue` alone."""

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.handle = cl.CommandQueue(context, device)
        self._has_times = False
        self._lock = threading.Lock()
        self._newest: cl.Event | None = None
        self._copies: deque[Any] = deque()  # events of the copies that may be unfinished; each holds its array
        self._fault = ""
        _queues.add(self)

    @property
    def is_idle(self) -> bool:
        """True if all enqueued commands are known to be done. Takes no lock."""
        newest = self._newest
        return not self._fault and (newest is None or newest.command_execution_status == DONE)

    def check(self) -> None:
        """Raise Unavailable when the device was lost."""
        if self._fault:
            raise Unavailable(self._fault, hint="start a new process; 'heald devices --check' lists working devices")

    def enqueue(self, command: Callable[..., cl.Event], *arguments: Any) -> None:
        """Call `command(handle, *arguments)`, which enqueues a command and returns its event.

        Raises MemoryError when the driver has no memory, and Unavailable when the device was lost.
        """
        self.check()
        with self._lock:
            try:
                self._newest = command(self.handle, *arguments)
            except cl.MemoryError as error:
                raise MemoryError(f"the driver: {error}") from error
            except cl.RuntimeError as error:  # other kinds are mistakes of the caller
                raise self.lose(error) from error

    def write(self, host: Any, buffer: Any) -> None:
        if host.nbytes:
            self.enqueue(self._copy, buffer, host)

    def read(self, buffer: Any, host: Any) -> None:
        if host.nbytes:
            self.enqueue(self._copy, host, buffer)

    def record(self) -> cl.Event | None:
        """The newest command's event, or None before the first command. Raises Unavailable."""
        self.check()
        with self._lock:
            try:
                self.handle.flush()
            except cl.Error as error:
                raise self.lose(error) from error
            return self._newest

    def synchronize(self, event: cl.Event | None) -> None:
        if event is not None:
            self.check()
            try:
                event.wait()
            except cl.Error as error:
                raise self.lose(error) from error
            with self._lock:
                self._let_go()

    def elapsed(self, start: cl.Event | None, end: cl.Event | None) -> float | None:
        """Return the seconds between the ends of two commands; None for a command without times.

        Commands have times after the first call of this method: the driver's queue is replaced by one that profiles.
        """
        if not self._has_times:
            self._enable_times()
            return None
        if start is None or end is None:
            return None
        try:
            return float(end.profile.end - start.profile.end) * 1e-9
        except cl.Error:  # a command from before the first call
            return None

    def _enable_times(self) -> None:
        self.check()
        with self._lock:
            try:
                self.handle.finish()
                self.handle = cl.CommandQueue(self.handle.context, self.handle.device,
                                              properties=cl.command_queue_properties.PROFILING_ENABLE)
                self._newest = cl.enqueue_marker(self.handle)
            except cl.Error as error:
                raise self.lose(error) from error
            self._has_times = True

    def lose(self, error: Exception) -> Unavailable:
        """Mark the device as lost. Returns the error to raise; every later call raises the same error."""
        self._fault = self._fault or f"the device was lost: {error}"
        self._abandon()
        return Unavailable(self._fault)

    def close(self) -> None:
        """Wait for the enqueued commands, unless the device was lost."""
        if not self._fault:
            try:
                self.handle.finish()
            except cl.Error as error:
                self.lose(error)
            else:
                self._copies.clear()
                self._fault = "the device has been closed"
        self._newest = None

    def _copy(self, handle: cl.CommandQueue, target: Any, source: Any) -> cl.Event:
        self._let_go()
        if len(self._copies) >= LARGEST_UNFINISHED_COPIES:
            self._copies[0].wait()
            self._let_go()
        event = cl.enqueue_copy(handle, target, source, is_blocking=False)
        self._copies.append(event)
        return cl.Event.from_int_ptr(event.int_ptr)  # the same event, without the array: it may be dropped at any time

    def _let_go(self) -> None:
        """Drop the finished copies. The caller holds `_lock`."""
        while self._copies and self._copies[0].command_execution_status == DONE:
            self._copies.popleft()

    def _abandon(self) -> None:
        """Keep the events of the remaining copies for ever: the copies may never end."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._copies))  # the end of the interpreter drops other references

    def forked(self) -> None:
        """Make the queue unusable in a forked child: the driver's threads do not exist there.

        The child may neither use nor release the driver's objects.
        """
        self._fault = "the device belongs to the process that forked this one"
        self._lock = threading.Lock()
        self._copies.extend((self.handle, self._newest))
        self._abandon()


_queues: weakref.WeakSet[CommandQueue] = weakref.WeakSet()


def _abandon_in_child() -> None:
    for queue in list(_queues):
        queue.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_in_child)
