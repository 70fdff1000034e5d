"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from . import array, conv, ctc, elementwise, joining, linear, loss, nn, pool, recurrent, reduction, slicing
from .rules import RULES

__all__ = [
    "RULES", "array", "conv", "ctc", "elementwise", "joining", "linear", "loss", "nn", "pool", "recurrent", "reduction",
    "slicing",
]
