"""Metadata functions of TensorFlow's ops, a family a module; RULES maps ops to them.

The first request for an op imports its family: a graph needs few. families.tsv lists the ops, a family a line;
`python -m heald_tf_ops.metadata` generates it.
"""

from heald.api import MetadataRule

from .rules import RULES

__all__ = ["RULES", "rule_of"]


def rule_of(op: str) -> MetadataRule | None:
    """Return the op's metadata function, or None for an op without one."""
    return RULES.get(op)
