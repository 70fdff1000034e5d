"""The plugin: the ops of TensorFlow Decision Forests, and their kernels for the device type CPU.

heald imports this module at every start, so the module is light and imports no kernels.
"""

from heald.api import KernelPackRegistrar, Kernels, OpRegistrar, hookimpl

from .ops import OPS

HEALD_API = (1, 3)


@hookimpl
def heald_ops(registry: OpRegistrar) -> None:
    for op in OPS:
        registry.add(op)


@hookimpl
def heald_kernels(registry: KernelPackRegistrar) -> None:
    registry.kernels("CPU", register_kernels)


def register_kernels(kernels: Kernels) -> None:
    kernels.later([op.name for op in OPS], _register_inference_kernels)


def _register_inference_kernels(kernels: Kernels) -> None:
    from .inference_kernels import register_kernels

    register_kernels(kernels)
