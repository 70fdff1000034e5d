"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op.

A family is imported when one of its ops is first asked for: a graph needs few. families.tsv has their ops, a family a
line, and is made by `python -m weft_tf_ops.metadata`.
"""

from weft.api import MetadataRule

from .rules import RULES

__all__ = ["RULES", "rule_of"]


def rule_of(op: str) -> MetadataRule | None:
    """The op's metadata function, or None where it has none."""
    return RULES.get(op)
