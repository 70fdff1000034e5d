"""The plugin tf_ops: brings TensorFlow's op set. This module is light because every start of weft imports it."""

from pathlib import Path

from weft.api import OpRegistrar, OpTable, PassRegistrar, hookimpl

WEFT_API = (1, 1)

DATA = Path(__file__).parent / "data"
OPS = OpTable(
    rows=DATA / "ops.tsv", rules="weft_tf_ops.metadata:rule_of", costs="weft_tf_ops.op_cost:op_cost",
    tiers=DATA / "op_tiers.tsv", probe="AddV2",
)
REFERENCE_OPS = OpTable(rows=DATA / "reference_ops.tsv", rules="weft_tf_ops.metadata:rule_of")


@hookimpl
def weft_ops(registry: OpRegistrar) -> None:
    registry.add_table(OPS)
    registry.add_table(REFERENCE_OPS)


@hookimpl
def weft_passes(registry: PassRegistrar) -> None:
    registry.add("references", "weft_tf_ops.references:rewrite_references", stage="pre_placement")
    registry.add("reference_handles", "weft_tf_ops.reference_handles:rewrite_handles", stage="pre_placement")
