"""The plugin: a kernel pack for the device type CPU.

heald imports this module at every start, so the module is light and imports no kernels.
"""

from dataclasses import dataclass

from heald.api import KernelPackRegistrar, hookimpl

HEALD_API = (1, 4)
HEALD_ID = "example_kernels"


@dataclass(frozen=True)
class Config:
    """[plugin.example_kernels]: the priority of all kernels. heald-cpu's kernels have 0, oneDNN's have 1."""

    priority: int = 10


@hookimpl
def heald_kernels(registry: KernelPackRegistrar, config: Config) -> None:
    registry.kernels("CPU", "heald_example_kernels.kernels:register_kernels", priority=config.priority)
