"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from . import array, codec, color, detection, elementwise, joining, linear, nn, reduction, resize, slicing
from .rules import RULES

__all__ = [
    "RULES", "array", "codec", "color", "detection", "elementwise", "joining", "linear", "nn", "reduction", "resize",
    "slicing",
]
