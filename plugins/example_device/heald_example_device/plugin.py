"""The plugin: a device type with kernels, and an op that its kernels alone compute.

heald imports this module at every start, so the module is light and imports no driver.
"""

from dataclasses import dataclass

from heald.api import DeviceRegistrar, OpRegistrar, OpSpec, hookimpl

HEALD_API = (1, 4)
HEALD_ID = "example_device"
MOST_DEVICES = 1024

GELU = OpSpec("Example>Gelu", ["x: T"], ["y: T"], ["T: {half, float}"], metadata=lambda _attrs, x: x)


@dataclass(frozen=True)
class Config:
    """[plugin.example_device]: the number of devices, and the bytes of memory of each."""

    devices: int = 1
    memory: int = 1 << 30

    def __post_init__(self) -> None:
        if not 0 <= self.devices <= MOST_DEVICES:
            raise ValueError(f"devices = {self.devices}: a number of devices up to {MOST_DEVICES}")


@hookimpl
def heald_devices(registry: DeviceRegistrar) -> None:
    registry.device(type="EXAMPLE", scan="heald_example_device.device:scan",
                    kernels="heald_example_device.kernels:register_kernels")


@hookimpl
def heald_ops(registry: OpRegistrar) -> None:
    registry.add(GELU)
