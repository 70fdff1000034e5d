"""The GPUs that the CUDA driver lists, and the methods that the runtime calls on each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from heald.api import Unavailable
from heald_kernel_text import CUDA_GPU

from . import driver, foreign
from .command_queue import Buffer, CommandQueue, Part
from .driver import Description, DriverError
from .marks import Event
from .memory import Memory, allowance
from .native import Native
from .programs import Programs

if TYPE_CHECKING:
    from .plugin import Config

OLDEST = (7, 5)  # compute capability: the compiler of CUDA 13 knows no older GPU
TENSOR_CORES = 80  # the oldest architecture, as in sm_80, whose tensor cores the kernel texts use
LANES = 128  # float32 units of a multiprocessor, each with a multiplication and an addition a clock
BUS = 2.4e10  # bytes a second over PCI Express 4.0 with 16 lanes, as copies reach it


def scan(config: Config) -> list[Gpu]:
    """The GPUs that config selects, in the driver's order. Raises Unavailable, with the reason, when none is left."""
    driver.probe()
    every = driver.devices()
    if not every:
        raise Unavailable("the CUDA driver lists no GPU", hint=driver.INSTALL)
    matching_gpus = [gpu for gpu in every if _matches_name(gpu, config.devices)]
    if not matching_gpus:
        there = ", ".join(f"'{gpu.name}' ({gpu.uuid})" for gpu in every)
        raise Unavailable(f"config leaves none of the GPUs: {there}", hint="change devices in [plugin.cuda]")
    return [Gpu(gpu, config) for gpu in matching_gpus]


class Gpu:
    type = "GPU"

    def __init__(self, gpu: Description, config: Config) -> None:
        self.uid = gpu.uuid
        self.attributes: dict[str, Any] = {
            "memory": allowance(config.memory, gpu.memory), "model": gpu.name, "bus": gpu.bus,
            "driver": f"CUDA {gpu.driver[0]}.{gpu.driver[1]}", "cost": _cost(gpu),
            "limits": {"part_alignment": foreign.ALIGNMENT},
            "architecture": config.architecture or f"sm_{gpu.capability[0]}{gpu.capability[1]}",
        }
        self._gpu = gpu
        architecture = int("".join(re.findall(r"\d+", self.attributes["architecture"])) or 0)
        self._target = replace(CUDA_GPU, processors=gpu.multiprocessors, tensor_cores=architecture >= TENSOR_CORES,
                               products=config.compute)

    def open(self) -> None:
        if self._gpu.capability < OLDEST:
            raise Unavailable(f"its compute capability is {_version_text(self._gpu.capability)}",
                              hint=f"kernels need one from {_version_text(OLDEST)}")
        try:
            self._context = driver.open_context(self._gpu.ordinal)
            self._queue = CommandQueue(self._context)
        except DriverError as error:
            raise Unavailable(f"its driver refuses a context: {error}", hint="update the driver") from error
        self.memory = Memory(self._queue, self.attributes["memory"])
        programs = Programs(self.attributes["architecture"])
        self.native = Native(self._gpu.ordinal, self._queue, programs, self._target)

    def close(self) -> None:
        is_released = self._queue.close()
        self.memory.close()
        if is_released:
            driver.close_context(self._context)

    def allocate(self, nbytes: int) -> Buffer | None:
        return self.memory.allocate(nbytes)

    def figures(self) -> str:
        return self.memory.figures()

    def adopt(self, array: Any) -> Buffer | None:
        if foreign.device_of(array) != self._gpu.ordinal:
            return None
        self._queue.check()
        return self.memory.adopt(*foreign.extent(array, self._queue.stream), array)

    def part(self, buffer: Buffer, start: int, nbytes: int) -> Buffer:
        return Part(buffer, start, nbytes)

    def free(self, buffer: Buffer) -> None:
        self.memory.free(buffer)

    def copy_in(self, host: Any, buffer: Buffer, stream: int) -> None:
        self._queue.write(host, buffer)

    def copy_out(self, buffer: Buffer, host: Any, stream: int) -> None:
        self._queue.read(buffer, host)

    def reaches(self, device: Any) -> bool:
        return isinstance(device, Gpu) and driver.can_access(self._gpu.ordinal, device._gpu.ordinal)

    def copy_peer(self, source: Any, target: Buffer, stream: int) -> bool:
        if not isinstance(source, Buffer):
            return False
        self._queue.copy_from(source, target)
        return True

    def capture(self, calls: Sequence[Callable[[], object]], stream: int) -> Callable[[], None]:
        return self._queue.capture(calls).replay

    def record(self, stream: int) -> Event:
        return self._queue.record()

    def synchronize(self, event: Event) -> None:
        self._queue.synchronize(event)

    def elapsed(self, start: Event, end: Event) -> float:
        return self._queue.elapsed(start, end)


def _matches_name(gpu: Description, parts: tuple[str, ...]) -> bool:
    return not parts or any(part.lower() in f"{gpu.name} {gpu.uuid}".lower() for part in parts)


def _cost(gpu: Description) -> dict[str, float]:
    """Figures of DeviceCost, from the GPU's clocks and widths."""
    return {"launch": 5e-6, "flops": max(2.0 * gpu.multiprocessors * LANES * gpu.clock, 1e11),
            "memory_bandwidth": max(2.0 * gpu.memory_clock * gpu.bus_width / 8, 1e10), "latency": 1e-5,
            "bandwidth": BUS}


def _version_text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
