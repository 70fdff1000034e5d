"""The device: the methods that the runtime calls. Only `synchronize` blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .memory import Buffer, Memory
from .native import Event, Native

if TYPE_CHECKING:
    from .plugin import Config

Array = np.ndarray[Any, Any]


def scan(config: Config) -> Iterator[OutsiderDevice]:
    for index in range(config.devices):
        yield OutsiderDevice(index, config.memory)


class OutsiderDevice:
    type = "OUTSIDER_DEVICE"

    def __init__(self, index: int, memory: int) -> None:
        self.uid = f"outsider_device{index}"
        self.attributes: dict[str, Any] = {"memory": memory, "model": "make-believe"}

    def open(self) -> None:
        self.memory = Memory(self.attributes["memory"])
        self.native = Native()

    def close(self) -> None:
        del self.memory, self.native

    def allocate(self, nbytes: int) -> Buffer | None:
        return self.memory.allocate(nbytes)

    def free(self, buffer: Buffer) -> None:
        self.memory.free(buffer)

    def copy_in(self, host: Array, buffer: Buffer, stream: int) -> None:
        self.native.write(stream, host, buffer)

    def copy_out(self, buffer: Buffer, host: Array, stream: int) -> None:
        self.native.read(stream, buffer, host)

    def record(self, stream: int) -> Event:
        return self.native.record(stream)

    def synchronize(self, event: Event) -> None:
        self.native.wait(event)
