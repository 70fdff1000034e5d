"""The plugin: a kernel pack for the device type CPU.

weft imports this module at every start, so the module is light and imports no kernels.
"""

from dataclasses import dataclass

from weft.api import KernelPackRegistrar, hookimpl

WEFT_API = (1, 3)


@dataclass(frozen=True)
class Config:
    """[plugin.example_kernels]: the priority of all kernels. weft-cpu's kernels have 0, oneDNN's have 1."""

    priority: int = 10


@hookimpl
def weft_kernels(registry: KernelPackRegistrar, config: Config) -> None:
    registry.kernels("CPU", "weft_example_kernels.kernels:register_kernels", priority=config.priority)
