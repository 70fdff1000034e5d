"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from . import array, conv, elementwise, joining, linear, loss, nn, pool, reduction, slicing
from .rules import RULES

__all__ = ["RULES", "array", "conv", "elementwise", "joining", "linear", "loss", "nn", "pool", "reduction", "slicing"]
