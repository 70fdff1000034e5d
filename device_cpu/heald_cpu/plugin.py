"""The CPU plugin: announces the device type CPU, and the host kernels of datasets."""

from dataclasses import dataclass

from heald.api import DeviceRegistrar, KernelPackRegistrar, hookimpl

HEALD_API = (1, 0)
MOST_DEVICES = 1024


@dataclass(frozen=True)
class Config:
    """[plugin.cpu]: `count` CPU devices are offered, all on the same cores."""

    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.count <= MOST_DEVICES:
            raise ValueError(f"count = {self.count}: a number of devices up to {MOST_DEVICES}")


@hookimpl
def heald_devices(registry: DeviceRegistrar) -> None:
    registry.device(type="CPU", scan="heald_cpu.device:scan", kernels="heald_cpu.kernels:register_kernels", priority=10)


@hookimpl
def heald_kernels(registry: KernelPackRegistrar) -> None:
    registry.host_kernels("heald_cpu.datasets.host_kernels:register")
