"""The OpenCL devices that this machine's drivers list, and the methods that the runtime calls on each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from heald.api import DiskCache, Unavailable, install_hint

if not DiskCache("opencl").put("pyopencl", b""):  # a cache of pyopencl's own fails where it cannot be written
    os.environ.setdefault("PYOPENCL_NO_CACHE", "true")
try:
    import pyopencl as cl
except ImportError as error:
    raise Unavailable(f"pyopencl cannot be imported: {error}", hint=install_hint("pyopencl")) from error

from .command_queue import CommandQueue
from .memory import Memory, allowance
from .native import Native
from .programs import Programs

if TYPE_CHECKING:
    from .plugin import Config

DOUBLE_TYPES = ("float64", "complex128")
NO_DRIVER = "install the vendor's OpenCL driver, or to try it on a CPU: apt install pocl-opencl-icd"
COSTS = (  # by rank: figures of a small GPU, and of a driver for CPUs
    {"launch": 1e-5, "flops": 2e12, "memory_bandwidth": 1e11, "latency": 2e-5, "bandwidth": 6e9},
    *({"launch": 3e-5, "flops": 3e10, "memory_bandwidth": 1e10, "latency": 2e-5, "bandwidth": 5e9},) * 2,
)
BUS_ADDRESS_ATTRIBUTES = ("pci_bus_info_khr", "pci_bus_id_nv", "topology_amd")  # by extension


def scan(config: Config) -> list[OpenCL]:
    """The devices that config selects: accelerators first, then CPUs. Simulators, which report every type, come last.

    Raises Unavailable, with the reason, when no device is left.
    """
    every = sorted(_available_devices(), key=_rank)
    if not every:
        raise Unavailable("there is no OpenCL driver, or none lists a device", hint=NO_DRIVER)
    matching_devices = [device for device in every
              if _matches_name(device.platform.name, config.platforms) and _matches_name(device.name, config.devices)]
    if not matching_devices:
        there = ", ".join(f"'{device.name}' of '{device.platform.name}'" for device in every)
        raise Unavailable(f"config leaves none of the devices: {there}",
                          hint="change platforms or devices in [plugin.opencl]")
    twins: dict[str, int] = {}
    devices = []
    for device in matching_devices:
        name = f"{device.platform.name}/{device.name}"
        number = twins[name] = twins.get(name, -1) + 1
        devices.append(OpenCL(device, f"{name}/{number}{_bus(device)}", allowance(config.memory, device)))
    return devices


class OpenCL:
    type = "OPENCL"

    def __init__(self, device: cl.Device, uid: str, memory: int) -> None:
        self.uid = uid
        self.attributes: dict[str, Any] = {
            "memory": memory, "model": device.name.strip(), "platform": device.platform.name.strip(),
            "driver": f"{device.platform.version.strip()}, {device.driver_version.strip()}",
            "accelerator": _rank(device) == 0, "cost": COSTS[_rank(device)],
            "limits": {"largest_buffer": device.max_mem_alloc_size,
                       "missing_types": () if device.double_fp_config else DOUBLE_TYPES,
                       "part_alignment": _part_alignment(device)},
        }
        self._device = device

    def open(self) -> None:
        try:
            context = cl.Context([self._device])
            self._queue = CommandQueue(context, self._device)
        except cl.Error as error:
            raise Unavailable(f"its driver refuses a queue: {error}", hint="update the driver") from error
        self.memory = Memory(self._queue, self.attributes["memory"])
        self.native = Native(context, self._device, self._queue, Programs(context, self._device))

    def close(self) -> None:
        self._queue.close()
        self.memory.close()

    def allocate(self, nbytes: int) -> Any:
        return self.memory.allocate(nbytes)

    def wrap(self, host: Any) -> Any:
        return self.memory.wrap(host)

    def part(self, buffer: Any, start: int, nbytes: int) -> Any:
        return self.memory.part(buffer, start, nbytes)

    def free(self, buffer: Any) -> None:
        self.memory.free(buffer)

    def copy_in(self, host: Any, buffer: Any, stream: int) -> None:
        self._queue.write(host, buffer)

    def copy_out(self, buffer: Any, host: Any, stream: int) -> None:
        self._queue.read(buffer, host)

    def record(self, stream: int) -> Any:
        return self._queue.record()

    def synchronize(self, event: Any) -> None:
        self._queue.synchronize(event)

    def elapsed(self, start: Any, end: Any) -> float | None:
        return self._queue.elapsed(start, end)


def _available_devices() -> Iterator[cl.Device]:
    with suppress(cl.LogicError):  # a loader without drivers raises this
        for platform in cl.get_platforms():
            with suppress(cl.Error):  # a driver without its hardware raises this
                yield from platform.get_devices()


def _rank(device: cl.Device) -> int:
    kinds = cl.device_type
    return 0 if not device.type & kinds.CPU else 1 if not device.type & kinds.GPU else 2


def _part_alignment(device: cl.Device) -> int | None:
    """Bytes at whose multiples sub-buffers begin; None where the driver states no power of two."""
    nbytes = int(device.mem_base_addr_align) // 8
    return nbytes if nbytes > 0 and not nbytes & nbytes - 1 else None


def _matches_name(name: str, parts: tuple[str, ...]) -> bool:
    return not parts or any(part.lower() in name.lower() for part in parts)


def _bus(device: cl.Device) -> str:
    for attribute in BUS_ADDRESS_ATTRIBUTES:
        with suppress(cl.Error, AttributeError):
            return f"/{getattr(device, attribute)}"
    return ""
