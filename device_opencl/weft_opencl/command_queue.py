"""The queue of a device: commands run in order, and host memory is let go of once they are done with it.

Whoever waits for a command waits for the newest one, on its own thread, without the GIL. The events of copies are kept
until they are done: to drop one earlier would block, and to drop its array would let the driver write into memory of
others. What is done is dropped by whoever waits or copies next. Drivers call back into no Python code.

A fault is for good: what comes later in the queue depends on what failed.
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
from weft.api import Unavailable

MOST_COPIES = 256  # that may be unfinished: whoever enqueues more waits for the oldest
DONE = cl.command_execution_status.COMPLETE


class CommandQueue:
    """`handle` is OpenCL's; what is enqueued there goes through `enqueue`."""

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.handle = cl.CommandQueue(context, device)
        self._lock = threading.Lock()
        self._newest: cl.Event | None = None
        self._copies: deque[Any] = deque()  # events of those that may be unfinished; each holds its array
        self._fault = ""
        _queues.add(self)

    @property
    def is_idle(self) -> bool:
        """Whether all that was enqueued is known to be done. Takes no lock."""
        newest = self._newest
        return not self._fault and (newest is None or newest.command_execution_status == DONE)

    def check(self) -> None:
        """Raise Unavailable when the device was lost."""
        if self._fault:
            raise Unavailable(self._fault, hint="start a new process; 'weft devices --check' tells what still works")

    def enqueue(self, command: Callable[..., cl.Event], *arguments: Any) -> None:
        """Call `command(handle, *arguments)`, which enqueues something and gives its event."""
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
        """The newest command's event, None where there is none."""
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

    def lose(self, error: Exception) -> Unavailable:
        """The device does not work any more: what to raise now, and from then on."""
        self._fault = self._fault or f"the device was lost: {error}"
        self._abandon()
        return Unavailable(self._fault)

    def close(self) -> None:
        """Wait for what is enqueued, unless the device was lost."""
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
        if len(self._copies) >= MOST_COPIES:
            self._copies[0].wait()
            self._let_go()
        event = cl.enqueue_copy(handle, target, source, is_blocking=False)
        self._copies.append(event)
        return cl.Event.from_int_ptr(event.int_ptr)  # the same, but it holds no array, and may be dropped at any time

    def _let_go(self) -> None:
        """Drop the copies that are done; `_lock` is held."""
        while self._copies and self._copies[0].command_execution_status == DONE:
            self._copies.popleft()

    def _abandon(self) -> None:
        """Nobody can tell whether the copies that are left will end: their events live for ever."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._copies))  # the end of the interpreter drops all else

    def forked(self) -> None:
        """In a child: the driver's threads are not here, so nothing of it may be used, nor let go."""
        self._fault = "the device belongs to the process that forked this one"
        self._lock = threading.Lock()
        self._copies.extend((self.handle, self._newest))
        self._abandon()


_queues: weakref.WeakSet[CommandQueue] = weakref.WeakSet()


def _forked() -> None:
    for queue in list(_queues):
        queue.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
