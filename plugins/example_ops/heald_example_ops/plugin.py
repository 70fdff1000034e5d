"""The plugin: an op, and its kernel for the device type CPU.

heald imports this module at every start, so the module is light and imports no kernels.
"""

from heald.api import KernelPackRegistrar, OpRegistrar, hookimpl

from .ops import NORM

HEALD_API = (1, 4)
HEALD_ID = "example_ops"


@hookimpl
def heald_ops(registry: OpRegistrar) -> None:
    registry.add(NORM)


@hookimpl
def heald_kernels(registry: KernelPackRegistrar) -> None:
    registry.kernels("CPU", "heald_example_ops.kernels:register_kernels")
