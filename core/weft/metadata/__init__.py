"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from . import array, elementwise, joining, linear, nn, reduction, resize, slicing
from .rules import RULES

__all__ = ["RULES", "array", "elementwise", "joining", "linear", "nn", "reduction", "resize", "slicing"]
