"""What the plugin brings. This module is imported whenever heald starts: it is light, and imports no driver."""

from dataclasses import dataclass
from typing import Any

from heald.api import OpSpec, hookimpl

HEALD_API = (1, 0)
MOST_DEVICES = 1024

GELU = OpSpec("Example>Gelu", ["x: T"], ["y: T"], ["T: {half, float}"], metadata=lambda _attrs, x: x)


@dataclass(frozen=True)
class Config:
    """[plugin.example]: how many devices there are, and the bytes of memory that each has."""

    devices: int = 1
    memory: int = 1 << 30

    def __post_init__(self) -> None:
        if not 0 <= self.devices <= MOST_DEVICES:
            raise ValueError(f"devices = {self.devices}: a number of devices up to {MOST_DEVICES}")


@hookimpl
def heald_devices(registry: Any) -> None:
    registry.device(type="EXAMPLE", scan="heald_example.device:scan", kernels="heald_example.kernels:register")


@hookimpl
def heald_ops(registry: Any) -> None:
    registry.add(GELU)


@hookimpl
def heald_allocators(registry: Any) -> None:
    registry.add("pages", "heald_example.allocator:PageAllocator")


@hookimpl
def heald_work_queues(registry: Any) -> None:
    registry.add("last_in_first_out", "heald_example.work_queue:LastInFirstOut")
