"""The device: the methods that the runtime calls. Its index is its position in the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from .config import Config
from .machine import Event, Machine
from .memory import Buffer
from .native import Native

Array = np.ndarray[Any, Any]


def scan(config: Config) -> Iterator[Sim]:
    """Yield the devices of one machine, which share a clock and a host."""
    machine = Machine()
    for index in range(config.devices):
        yield Sim(index, machine, config)


class Sim:
    """A simulated device. `native` outlives `close`, so that its report can be read afterwards."""

    type = "SIM"
    native: Native

    def __init__(self, index: int, machine: Machine, config: Config) -> None:
        self.uid = f"sim{index}"
        self.attributes: dict[str, Any] = {"memory": config.memory, "model": "simulated", "cost": {
            "launch": config.launch_latency + config.enqueue, "flops": config.flops,
            "memory_bandwidth": config.bandwidth, "latency": config.copy_latency, "bandwidth": config.link_bandwidth},
            "limits": {"largest_buffer": config.largest_buffer, "missing_types": config.missing_types,
                       "copy_alignment": config.copy_alignment, "part_alignment": config.part_alignment or None}}
        if config.copy_streams:
            self.attributes["queues"] = {"copy_in": 1, "copy_out": 2}
        self._new_native = partial(Native, f"SIM:{index}", machine, config)

    def open(self) -> None:
        self.native = self._new_native()

    def close(self) -> None:
        self.native.finish()

    def allocate(self, nbytes: int) -> Buffer | None:
        return self.native.allocate(nbytes)

    def wrap(self, host: Array) -> Buffer | None:
        return self.native.wrap(host)

    def part(self, buffer: Buffer, start: int, nbytes: int) -> Buffer:
        return self.native.part(buffer, start, nbytes)

    def free(self, buffer: Buffer) -> None:
        self.native.free(buffer)

    def copy_in(self, host: Array, buffer: Buffer, stream: object) -> None:
        self.native.write(stream, host, buffer)

    def copy_out(self, buffer: Buffer, host: Array, stream: object) -> None:
        self.native.read(stream, buffer, host)

    def copy_peer(self, src: Any, dst: Any, stream: object) -> bool:
        """Copy between this device and another of its machine, on a stream of this one. False if impossible."""
        return self.native.copy(stream, src, dst)

    def capture(self, calls: Sequence[Callable[[], object]], stream: object) -> Callable[[], None]:
        return self.native.capture(stream, calls)

    def record(self, stream: object) -> Event:
        return self.native.record(stream)

    def wait(self, stream: object, event: Event) -> None:
        self.native.wait(stream, event)

    def synchronize(self, event: Event) -> None:
        self.native.synchronize(event)

    def elapsed(self, start: Event, end: Event) -> float:
        """Return seconds of virtual time."""
        return end.seconds - start.seconds
