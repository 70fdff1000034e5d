"""The OpenCL plugin: announces the device type OPENCL. This module is light; pyopencl is imported at the first scan."""

from dataclasses import dataclass, field

from heald.api import DeviceRegistrar, hookimpl

HEALD_API = (1, 4)


@dataclass(frozen=True)
class Config:
    """The section [plugin.opencl] of config.

    `platforms` and `devices`: substrings of the names of platforms and devices to offer; empty: all.
    `memory`: the most memory that heald takes of each device, in bytes or as a share of the device's memory.
    """

    platforms: tuple[str, ...] = field(default=(), metadata={"found": True})
    devices: tuple[str, ...] = field(default=(), metadata={"found": True})
    memory: int | str = field(default="80%", metadata={"found": True})


@hookimpl
def heald_devices(registry: DeviceRegistrar) -> None:
    # below the CPU's priority while few ops have kernels: placement uses OPENCL on explicit request only
    registry.device(type="OPENCL", scan="heald_opencl.device:scan", kernels="heald_opencl.kernels:register_kernels",
                    priority=5)
