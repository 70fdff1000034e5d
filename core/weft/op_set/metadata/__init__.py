"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op.

A family is imported when one of its ops is first asked for: a graph needs few. families.tsv has their ops, a family a
line, and is made by `python -m weft.op_set.metadata`.
"""

from .rules import RULES

__all__ = ["RULES"]
