"""The CUDA plugin: announces the device type GPU. This module is light; the driver is looked for at the first scan."""

from dataclasses import dataclass, field

from heald.api import DeviceRegistrar, hookimpl

HEALD_API = (1, 4)
COMPUTE = ("float32", "tf32", "float16", "bfloat16")


@dataclass(frozen=True)
class Config:
    """The section [plugin.cuda] of config.

    `devices`: substrings of the names and UUIDs of the GPUs to offer; empty: all.
    `memory`: the most memory that heald takes of each GPU, in bytes or as a share of the GPU's memory.
    `compute`: the type in which products and convolutions of float32 multiply; sums are float32.
    `architecture`: the architecture that kernels are compiled for, such as "sm_90"; empty: the GPU's own.
    """

    devices: tuple[str, ...] = field(default=(), metadata={"found": True})
    memory: int | str = field(default="80%", metadata={"found": True})
    compute: str = field(default="float32", metadata={"found": True})
    architecture: str = field(default="", metadata={"found": True})

    def __post_init__(self) -> None:
        if self.compute not in COMPUTE:
            raise ValueError(f"compute = {self.compute!r}: one of {', '.join(COMPUTE)}")


@hookimpl
def heald_devices(registry: DeviceRegistrar) -> None:
    # below the CPU's priority as long as no GPU has run it: placement uses GPU on explicit request only
    registry.device(type="GPU", scan="heald_cuda.device:scan", kernels="heald_cuda.kernels:register_kernels",
                    priority=8)
