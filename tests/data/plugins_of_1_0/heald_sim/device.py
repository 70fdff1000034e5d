"""The device: what the runtime asks of it, said in the driver's terms. Its index is its place in the machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .driver import Driver
from .machine import Event, Machine
from .memory import Buffer

if TYPE_CHECKING:
    from .plugin import Config

Array = np.ndarray[Any, Any]


def scan(config: Config) -> Iterator[Sim]:
    """The devices of one machine, which has one clock and one host."""
    machine = Machine()
    for index in range(config.devices):
        yield Sim(index, machine, config)


class Sim:
    """`native`, the Driver, stays when the device is closed, so that its report can be read then."""

    type = "SIM"
    native: Driver

    def __init__(self, index: int, machine: Machine, config: Config) -> None:
        self.uid = f"sim{index}"
        self.attributes = {"memory": config.memory, "model": "simulated"}
        self._new = partial(Driver, f"SIM:{index}", machine, config)

    def open(self) -> None:
        self.native = self._new()

    def close(self) -> None:
        self.native.finish()

    def allocate(self, nbytes: int) -> Buffer | None:
        return self.native.allocate(nbytes)

    def wrap(self, host: Array) -> Buffer | None:
        return self.native.wrap(host)

    def free(self, buffer: Buffer) -> None:
        self.native.free(buffer)

    def copy_in(self, host: Array, buffer: Buffer, stream: object) -> None:
        self.native.write(stream, host, buffer)

    def copy_out(self, buffer: Buffer, host: Array, stream: object) -> None:
        self.native.read(stream, buffer, host)

    def copy_peer(self, src: Any, dst: Any, stream: object) -> bool:
        """Between this device and another of its machine, on a stream of this one; False where that cannot be."""
        return self.native.copy(stream, src, dst)

    def record(self, stream: object) -> Event:
        return self.native.record(stream)

    def wait_event(self, stream: object, event: Event) -> None:
        self.native.wait(stream, event)

    def synchronize(self, event: Event) -> None:
        self.native.synchronize(event)
