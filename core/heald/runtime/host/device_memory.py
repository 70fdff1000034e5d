"""Memory of a host's devices: allocation of buffers, and their release.

A frame or a program may be collected at any moment, even within a device's own method and under its lock. So a
finalizer only notes the buffers. They are freed before the next allocation, at the end of a run on devices, and when a
session is closed.
"""

# The theory of release
#
# A buffer belongs to an owner: a frame, a program, or an object of the user. It is released in one of two ways:
#
#   by the owner's method    `free` or `drain`, at once
#   by the owner's end       its finalizer appends (function, buffer) to `dropped`; `free_dropped` frees it later
#
# Invariants
# - No finalizer of a frame, program or buffer calls a device or waits for a lock. `deque.append` is a single step.
# - A buffer leaves its list before it is freed, so an exception frees none twice.
# - After `close`, and in a forked child for the parent's devices, release does nothing: the driver is gone.
# - A buffer over an array of the host (`wrap`, in `enter`) is for arrays that nothing writes while the buffer lives:
#   constants, and feeds of waiting callers. Intermediate values are copied, for the memory plan reuses their arrays.
#
# Rule: a new owner of buffers registers `dropped.extend` or `dropped.append` as its finalizer, and nothing else.

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, MutableSequence
from contextlib import suppress
from typing import Any

from ...errors import InvalidArgument, ResourceExhausted
from ..contract.device import STREAM, Device, Stream, own_method
from ..contract.device_limits import DeviceLimits
from ..values.foreign_array import ForeignArray
from ..values.tensor import shape_text

Owned = tuple[Callable[[Any], None], Any]  # a buffer, after the function that takes it back


class Release:
    """Takes an object back that a kernel prepared on a device, by the kernel's own function."""

    def __init__(self, device: Device, release: Callable[[Any], object]) -> None:
        self.free = device.free
        self._release = release

    def __call__(self, prepared: Any) -> None:
        self._release(prepared)


class DeviceMemory:
    """The memory of the devices of one host. Any thread may call."""

    def __init__(self) -> None:
        self.dropped: deque[Owned] = deque()  # finalizers of collected owners extend this
        self._is_closed = False
        self._refused: list[Callable[[Any], None]] = []  # `free` of devices that may not be called
        self._limits: dict[int, DeviceLimits] = {}  # by id of the device

    def refuse(self, devices: Iterable[Device]) -> None:
        """Free no buffer of these devices any more. Called in a forked child, for devices of its parent."""
        self._refused += [device.free for device in devices]

    def allocate(self, device: Device, nbytes: int, what: str = "") -> Any:
        """Return a buffer of at least `nbytes` bytes, and of at least one, as the device's limits demand.

        Raises ResourceExhausted, whose text names `what` as the purpose.
        """
        if self.dropped:
            self.free_dropped()
        limits = self._limits.get(id(device)) or self._limits.setdefault(id(device), DeviceLimits.of(device.attributes))
        size = limits.allocation(nbytes)
        if limits.largest_buffer is not None and size > limits.largest_buffer:
            raise ResourceExhausted(f"no memory for a buffer of {nbytes} bytes{what and ', '}{what}: the device's "
                                    f"largest buffer has {limits.largest_buffer}")
        buffer = device.allocate(size)
        if buffer is None:
            figures = (own_method(device, "figures") or str)()
            raise ResourceExhausted(f"no memory for a buffer of {nbytes} bytes{what and ', '}{what}"
                                    f"{figures and ': '}{figures}")
        return buffer

    def enter(self, device: Device, array: Any, what: str = "", stream: Stream = STREAM) -> Any:
        """Return a buffer with the content of a C-contiguous array. A device that can read the array's own memory gets
        a buffer over it; else a copy is enqueued on the stream.

        The array must not change until the buffer is freed. Raises ResourceExhausted.
        """
        if array.__class__ is ForeignArray:
            return self._adopt(device, array)
        wrap = own_method(device, "wrap")
        buffer = None if wrap is None else wrap(array)
        if buffer is None:
            buffer = self.allocate(device, array.nbytes, what)
            try:
                device.copy_in(array, buffer, stream)
            except BaseException:
                device.free(buffer)
                raise
        return buffer

    def _adopt(self, device: Device, foreign: ForeignArray) -> Any:
        buffer = device.adopt(foreign.array)
        if buffer is None:
            raise InvalidArgument(f"a feed of shape {shape_text(foreign.shape)} is in the memory of another device",
                                  hint="give an array of NumPy, or one on the device that reads it")
        return buffer

    def free(self, buffers: Iterable[Owned]) -> None:
        """Return buffers to their devices, unless the devices are closed."""
        for take_back, buffer in buffers:
            free = take_back.free if isinstance(take_back, Release) else take_back
            if not self._is_closed and free not in self._refused:
                take_back(buffer)

    def drain(self, buffers: MutableSequence[Owned]) -> None:
        """Return all buffers of a list, the newest first. Each buffer leaves the list before it is freed, so that none
        is freed twice."""
        while buffers:
            self.free([buffers.pop()])

    def free_dropped(self) -> None:
        """Free the buffers of collected owners. An exception of a device is dropped: it is no error of the caller."""
        while self.dropped:
            try:
                owned = self.dropped.popleft()
            except IndexError:  # another thread was faster
                return
            with suppress(Exception):
                self.free([owned])

    def close(self) -> None:
        """Free the noted buffers, and ignore all later ones. Called before the devices are closed."""
        self.free_dropped()
        self._is_closed = True
