"""The example plugin: a device type with kernels, an op, an allocator and a work queue.

weft imports this module at every start, so the module is light and imports no driver.
"""

from dataclasses import dataclass
from typing import Any

from weft.api import OpSpec, hookimpl

WEFT_API = (1, 0)
MOST_DEVICES = 1024

GELU = OpSpec("Example>Gelu", ["x: T"], ["y: T"], ["T: {half, float}"], metadata=lambda _attrs, x: x)


@dataclass(frozen=True)
class Config:
    """[plugin.example]: the number of devices, and the bytes of memory of each."""

    devices: int = 1
    memory: int = 1 << 30

    def __post_init__(self) -> None:
        if not 0 <= self.devices <= MOST_DEVICES:
            raise ValueError(f"devices = {self.devices}: a number of devices up to {MOST_DEVICES}")


@hookimpl
def weft_devices(registry: Any) -> None:
    registry.device(type="EXAMPLE", scan="weft_example.device:scan", kernels="weft_example.kernels:register_kernels")


@hookimpl
def weft_ops(registry: Any) -> None:
    registry.add(GELU)


@hookimpl
def weft_allocators(registry: Any) -> None:
    registry.add("pages", "weft_example.allocator:PageAllocator")


@hookimpl
def weft_work_queues(registry: Any) -> None:
    registry.add("last_in_first_out", "weft_example.work_queue:LastInFirstOut")
