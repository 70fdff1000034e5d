"""The plugin: an op, and its kernel for the device type CPU.

weft imports this module at every start, so the module is light and imports no kernels.
"""

from weft.api import KernelPackRegistrar, OpRegistrar, hookimpl

from .ops import NORM

WEFT_API = (1, 3)


@hookimpl
def weft_ops(registry: OpRegistrar) -> None:
    registry.add(NORM)


@hookimpl
def weft_kernels(registry: KernelPackRegistrar) -> None:
    registry.kernels("CPU", "weft_example_ops.kernels:register_kernels")
