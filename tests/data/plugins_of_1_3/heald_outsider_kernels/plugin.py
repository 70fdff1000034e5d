"""The plugin: a kernel pack for the device type CPU.

heald imports this module at every start, so the module is light and imports no kernels.
"""

from dataclasses import dataclass

from heald.api import KernelPackRegistrar, hookimpl

HEALD_API = (1, 3)


@dataclass(frozen=True)
class Config:
    """[plugin.outsider_kernels]: the priority of all kernels. heald-cpu's kernels have 0, oneDNN's have 1."""

    priority: int = 10


@hookimpl
def heald_kernels(registry: KernelPackRegistrar, config: Config) -> None:
    registry.kernels("CPU", "heald_outsider_kernels.kernels:register_kernels", priority=config.priority)
