"""The queue of a device: commands run in order, and a thread lets go of host memory once they are done with it.

Whoever waits for a command waits for the newest one, on its own thread, without the GIL. The waiter does the same for
copies that nobody waits for (a step may fail after it enqueued them): to drop the event of a running copy would block,
and to drop its array would let the driver write into memory of others. Drivers call back into no Python code.

A fault is for good: what comes later in the queue depends on what failed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import pyopencl as cl
from weft.api import Unavailable

Kept = tuple[cl.Event, Any, Any]  # a copy's event, and the memory that it needs


class Queue:
    """`handle` is OpenCL's. Whoever enqueues something there holds `lock`, and says so with `enqueued`."""

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self.handle = cl.CommandQueue(context, device)
        self.lock = threading.Lock()
        self._newest: cl.Event | None = None
        self._fault = ""
        self._kept: SimpleQueue[Kept | None] = SimpleQueue()
        self._waiter: threading.Thread | None = None
        _queues.add(self)

    def check(self) -> None:
        """Raise Unavailable when the device was lost."""
        if self._fault:
            raise Unavailable(self._fault, hint="start a new process; 'weft devices --check' tells what still works")

    def enqueue(self, command: Callable[..., cl.Event], *arguments: Any) -> None:
        """Call `command(handle, *arguments)`, which enqueues something and gives its event."""
        self.check()
        with self.lock:
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
        with self.lock:
            self.handle.flush()
            return self._newest

    def synchronize(self, event: cl.Event | None) -> None:
        if event is not None:
            self.check()
            try:
                event.wait()
            except cl.Error as error:
                raise self.lose(error) from error
            with self.lock:
                if self._newest is event:
                    self._newest = None  # it holds its copy's array

    def lose(self, error: Exception) -> Unavailable:
        """The device does not work any more: what to raise now, and from then on."""
        self._fault = self._fault or f"the device was lost: {error}"
        return Unavailable(self._fault)

    def close(self) -> None:
        """Wait for what is enqueued, and end the thread."""
        if self._waiter is not None:
            self._kept.put(None)
            self._waiter.join()
            self._waiter = None
        if not self._fault:
            self.handle.finish()
            self._fault = "the device has been closed"
        self._newest = None

    def _copy(self, handle: cl.CommandQueue, target: Any, source: Any) -> cl.Event:
        event = cl.enqueue_copy(handle, target, source, is_blocking=False)
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._let_go, name=f"weft-opencl-{os.getpid()}", daemon=True)
            self._waiter.start()
        self._kept.put((event, target, source))
        return event

    def _let_go(self) -> None:
        is_open = True
        while is_open:
            batch = [self._kept.get()]
            while True:
                try:
                    batch.append(self._kept.get_nowait())
                except Empty:
                    break
            copies = [kept for kept in batch if kept is not None]
            is_open = len(copies) == len(batch)
            try:
                if copies:
                    copies[-1][0].wait()
            except cl.Error as error:
                self.lose(error)
            batch.clear()
            copies.clear()

    def forked(self) -> None:
        """In a child: the driver's threads are not here, so nothing of it may be used, nor let go."""
        self._fault = "the device belongs to the process that forked this one"
        self.lock = threading.Lock()
        self._waiter = None
        _left.append((self.handle, self._newest, self._kept))


_queues: weakref.WeakSet[Queue] = weakref.WeakSet()
_left: list[Any] = []


def _forked() -> None:
    for queue in list(_queues):
        queue.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
