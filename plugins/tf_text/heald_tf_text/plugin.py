"""The plugin tf_text: the op table of TensorFlow Text, and its kernels for the device type CPU.

Every start of heald imports this module, so the module is light.
"""

from pathlib import Path

from heald.api import KernelPackRegistrar, OpRegistrar, OpTable, hookimpl

HEALD_API = (1, 3)

OPS = OpTable(rows=Path(__file__).parent / "data" / "ops.tsv", rules="heald_tf_text.metadata:rule_of")


@hookimpl
def heald_ops(registry: OpRegistrar) -> None:
    registry.add_table(OPS)


@hookimpl
def heald_kernels(registry: KernelPackRegistrar) -> None:
    registry.kernels("CPU", "heald_tf_text.kernels:register_kernels")
