"""The CPU as a device: its buffers are host memory, its stream is the calling thread."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from heald.api import PlainAllocator

if TYPE_CHECKING:
    from .plugin import Config

Array = np.ndarray[Any, Any]
MEMORY = PlainAllocator()
# For placement by cost: seconds of a NumPy call, operations a second of a core with 256-bit vectors, bytes a second
LAUNCH, CORE_FLOPS, MEMORY_BANDWIDTH = 1e-6, 3e10, 1e10


def scan(config: Config) -> Iterator[Cpu]:
    for index in range(config.count):
        yield Cpu(index)


class Cpu:
    type = "CPU"
    attributes: dict[str, Any]

    def __init__(self, index: int) -> None:
        self.uid = f"cpu{index}"
        self.attributes = {"host_visible": True, "model": platform.machine(), "cost": {
            "launch": LAUNCH, "flops": CORE_FLOPS * (os.cpu_count() or 1), "memory_bandwidth": MEMORY_BANDWIDTH}}
        if hasattr(os, "sysconf"):
            self.attributes["memory"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def open(self) -> None: ...

    def close(self) -> None: ...

    def allocate(self, nbytes: int) -> Array | None:
        try:
            return MEMORY.allocate(nbytes)  # type: ignore[no-any-return]
        except MemoryError:
            return None

    def free(self, buffer: Array) -> None: ...

    def copy_in(self, host: Array, buffer: Array, stream: object) -> None:
        buffer[: host.nbytes] = host.reshape(-1).view(np.uint8)

    def copy_out(self, buffer: Array, host: Array, stream: object) -> None:
        host.reshape(-1).view(np.uint8)[:] = buffer[: host.nbytes]

    def record(self, stream: object) -> None: ...

    def synchronize(self, event: object) -> None: ...
