"""Memory of a host's devices: how buffers are had, and how they go back.

A frame or a program may be collected at any moment, in the middle of a device's own method, under its lock. So its
buffers are only noted then, and freed before the next one is allocated, at the end of a run on devices, and when a
session is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, MutableSequence
from contextlib import suppress
from typing import Any

from ..contract.device import STREAM, Device
from ..errors import ResourceExhausted

Owned = tuple[Callable[[Any], None], Any]  # a buffer, and what takes it back


class DeviceMemory:
    """Of the devices of one host. Safe to use from several threads."""

    def __init__(self) -> None:
        self.dropped: deque[Owned] = deque()  # whoever is collected extends this
        self._is_closed = False

    def allocate(self, device: Device, nbytes: int, what: str = "") -> Any:
        """A buffer of at least one byte. Raises ResourceExhausted, which says `what` it was for."""
        if self.dropped:
            self.free_dropped()
        buffer = device.allocate(max(nbytes, 1))
        if buffer is None:
            raise ResourceExhausted(f"no memory for a buffer of {nbytes} bytes{what and ', '}{what}")
        return buffer

    def enter(self, device: Device, array: Any, what: str = "") -> Any:
        """A buffer over the array's own memory where the device can read that, else with a copy that is enqueued. The
        array must stay as it is until the buffer is freed. Raises ResourceExhausted."""
        wrap = getattr(device, "wrap", None)
        buffer = None if wrap is None else wrap(array)
        if buffer is None:
            buffer = self.allocate(device, array.nbytes, what)
            try:
                device.copy_in(array, buffer, STREAM)
            except BaseException:
                device.free(buffer)
                raise
        return buffer

    def upload(self, device: Device, array: Any) -> Any:
        """A buffer for a constant, which is there. Raises ResourceExhausted."""
        buffer = self.enter(device, array, "a constant")
        try:
            device.synchronize(device.record(STREAM))
        except BaseException:
            device.free(buffer)
            raise
        return buffer

    def free(self, buffers: Iterable[Owned]) -> None:
        """Give buffers back, unless the devices are closed."""
        for take_back, buffer in buffers:
            if not self._is_closed:
                take_back(buffer)

    def drain(self, buffers: MutableSequence[Owned]) -> None:
        """Give back all of them, the newest first; each leaves the list before, so that none is given back twice."""
        while buffers:
            self.free([buffers.pop()])

    def free_dropped(self) -> None:
        """Give back what those had who have been collected. What a device says to that is no error of who asks."""
        while self.dropped:
            try:
                owned = self.dropped.popleft()
            except IndexError:  # another thread was faster
                return
            with suppress(Exception):
                self.free([owned])

    def close(self) -> None:
        """Before the devices are closed."""
        self.free_dropped()
        self._is_closed = True
