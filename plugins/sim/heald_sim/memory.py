"""Device memory: an address space of its own, first fit, with poison in fresh and freed memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from heald.api import DType

from .happens_before import History

ALIGNMENT = 256
POISON = 0xFF  # NaN in every float type, -1 in every signed one


class Buffer:
    """A range of device memory, or the memory of the array `host`, which is only read.

    `uses`: the number of enqueued operations that have not run; `failure`: the reason if the buffer has no value.
    """

    __slots__ = ("_bytes", "address", "failure", "history", "host", "memory", "nbytes", "number", "state", "uses")

    def __init__(
        self, memory: Memory, number: int, address: int, nbytes: int, host: np.ndarray[Any, Any] | None = None
    ) -> None:
        self.memory = memory
        self.number = number
        self.address = address
        self.nbytes = nbytes
        self.state = "live"  # or freed, then returned with its last use; or lost with its device
        self.uses = 0
        self.failure: Exception | None = None
        self.history = History()
        self.host = host
        self._bytes = np.full(nbytes, POISON, np.uint8) if host is None else host.reshape(-1).view(np.uint8)
        self._bytes.flags.writeable = host is None

    @property
    def device(self) -> str:
        return self.memory.device

    @property
    def whole(self) -> Buffer:
        """The buffer that was allocated."""
        return self

    @property
    def extent(self) -> int:
        """The bytes of address space that the buffer takes."""
        return _aligned_size(self.nbytes)

    def array(self, dtype: DType, dims: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """The start of the buffer as an array, for kernels only."""
        return self._bytes[: prod(dims) * dtype.itemsize].view(dtype.numpy).reshape(dims)

    def bytes(self, count: int) -> np.ndarray[Any, Any]:
        """The first `count` bytes, for copy engines only."""
        return self._bytes[:count]

    def poison(self) -> None:
        self._bytes.fill(POISON)

    def __repr__(self) -> str:
        return f"{self.device} buffer {self.number} ({self.nbytes} bytes at {self.address:#x})"

    def __array__(self, *_args: object, **_options: object) -> np.ndarray[Any, Any]:
        raise TypeError(f"{self} is memory of a SIM device, which the host cannot reach: copy it out first")


class Part(Buffer):
    """A part of a buffer. Its state, its failure, and the accesses to it are those of the whole."""

    __slots__ = ("_whole",)

    def __init__(self, buffer: Buffer, start: int, nbytes: int) -> None:
        self._whole = buffer.whole
        self.memory, self.number, self.host = buffer.memory, buffer.number, buffer.host
        self.address = buffer.address + start
        self.nbytes = nbytes
        self._bytes = buffer.bytes(start + nbytes)[start:]

    @property
    def whole(self) -> Buffer:
        return self._whole

    def __repr__(self) -> str:
        return f"{self.nbytes} bytes at {self.address:#x} of {self._whole}"


def _of_the_whole(name: str) -> property:
    return property(lambda part: getattr(part.whole, name), lambda part, value: setattr(part.whole, name, value))


for _name in ("state", "uses", "failure", "history"):
    setattr(Part, _name, _of_the_whole(_name))


class Memory:
    """The memory of one device, first fit. A buffer that is freed while enqueued operations use it returns with the
    last of them."""

    def __init__(self, device: str, size: int) -> None:
        self.device = device
        self.size = size
        self.used = 0
        self.peak = 0
        self.late = 0  # freed buffers that operations still use
        self._count = 0
        self.live_buffers: list[Buffer] = []  # by address

    def allocate(self, nbytes: int) -> Buffer | None:
        need = _aligned_size(nbytes)
        for index, (start, end) in enumerate(self._holes()):
            if need <= end - start:
                self._count += 1
                buffer = Buffer(self, self._count, start, nbytes)
                self.live_buffers.insert(index, buffer)
                self.used += need
                self.peak = max(self.peak, self.used)
                return buffer
        return None

    def wrap(self, host: np.ndarray[Any, Any]) -> Buffer:
        self._count += 1
        return Buffer(self, self._count, host.__array_interface__["data"][0], host.nbytes, host)

    def free(self, buffer: Buffer) -> None:
        buffer.state = "freed"
        self.late += 1
        self.release(buffer)

    def release(self, buffer: Buffer) -> None:
        """Take a freed buffer's memory back if no enqueued operation uses it."""
        buffer = buffer.whole
        if buffer.state == "freed" and not buffer.uses:
            buffer.state = "returned"
            self.late -= 1
            if buffer.host is None:
                buffer.poison()
                self.live_buffers.remove(buffer)
                self.used -= buffer.extent

    def lose(self) -> None:
        """Drop all buffers, for a device that is reset."""
        for buffer in self.live_buffers:
            buffer.state = "lost"
            buffer.poison()
        self.live_buffers.clear()
        self.used = self.late = 0

    def _holes(self) -> Iterator[tuple[int, int]]:
        """Start and end of the holes, which may be empty, before each buffer and behind the last."""
        ends = [0, *(buffer.address + buffer.extent for buffer in self.live_buffers)]
        yield from zip(ends, [*(buffer.address for buffer in self.live_buffers), self.size], strict=True)


def _aligned_size(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
