"""The plugin tf_ops: brings TensorFlow's op set. This module is light because every start of heald imports it."""

from pathlib import Path

from heald.api import OperatorTable, OpRegistrar, OpTable, PassRegistrar, hookimpl

HEALD_API = (1, 1)

DATA = Path(__file__).parent / "data"
OPS = OpTable(
    rows=DATA / "ops.tsv", rules="heald_tf_ops.metadata:rule_of", costs="heald_tf_ops.op_cost:op_cost",
    tiers=DATA / "op_tiers.tsv", probe="AddV2",
)
REFERENCE_OPS = OpTable(rows=DATA / "reference_ops.tsv", rules="heald_tf_ops.metadata:rule_of")
SEQUENCE_OPS = OpTable(rows=DATA / "sequence_ops.tsv", rules="heald_tf_ops.metadata:rule_of")

OPERATORS = OperatorTable(
    ops={
        "+": {"fiucq": "AddV2", "o": "Add"}, "-": "Sub", "*": "Mul", "/": "RealDiv", "//": "FloorDiv",
        "%": "FloorMod", "**": "Pow", "@": "BatchMatMulV2", "<": "Less", "<=": "LessEqual", ">": "Greater",
        ">=": "GreaterEqual", "==": "Equal", "!=": "NotEqual", "neg": "Neg", "abs": {"fiu": "Abs", "c": "ComplexAbs"},
        "~": {"b": "LogicalNot", "iu": "Invert"}, "&": {"b": "LogicalAnd", "iu": "BitwiseAnd"},
        "|": {"b": "LogicalOr", "iu": "BitwiseOr"}, "^": {"b": "NotEqual", "iu": "BitwiseXor"},
    },
    promote="heald_tf_ops.operators:promote", indexing="heald_tf_ops.operators:index",
    attrs={"==": {"incompatible_shape_error": False}, "!=": {"incompatible_shape_error": False}},
)


@hookimpl
def heald_ops(registry: OpRegistrar) -> None:
    registry.add_table(OPS)
    registry.add_table(REFERENCE_OPS)
    registry.add_table(SEQUENCE_OPS)
    registry.add_operators(OPERATORS)


@hookimpl
def heald_passes(registry: PassRegistrar) -> None:
    registry.add("references", "heald_tf_ops.references:rewrite_references", stage="pre_placement",
                 about="puts ops on resources in the place of ops on reference variables", preserves="names and values")
    registry.add("reference_handles", "heald_tf_ops.reference_handles:rewrite_handles", stage="pre_placement",
                 about="puts queues, tables, stacks and tensor arrays on resources in the place of those on references",
                 preserves="names and values")
