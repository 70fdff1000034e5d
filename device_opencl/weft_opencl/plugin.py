"""The OpenCL plugin: announces the device type OPENCL. This module is light; pyopencl is imported at the first scan."""

from dataclasses import dataclass, field

from weft.api import DeviceRegistrar, hookimpl

WEFT_API = (1, 0)


@dataclass(frozen=True)
class Config:
    """[plugin.opencl]. `platforms` and `devices`: parts of the names of those to offer; empty: all. `memory`: what weft
    may take of each device's, in bytes or as a share of it."""

    platforms: tuple[str, ...] = field(default=(), metadata={"found": True})
    devices: tuple[str, ...] = field(default=(), metadata={"found": True})
    memory: int | str = field(default="80%", metadata={"found": True})


@hookimpl
def weft_devices(registry: DeviceRegistrar) -> None:
    # below the CPU's priority while few ops have kernels: placement uses OPENCL on explicit request only
    registry.device(type="OPENCL", scan="weft_opencl.device:scan", kernels="weft_opencl.kernels:register_kernels",
                    priority=5)
