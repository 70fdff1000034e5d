"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from . import array, elementwise, fft, joining, linalg, linear, nn, random, reduction, slicing
from .rules import RULES

__all__ = [
    "RULES", "array", "elementwise", "fft", "joining", "linalg", "linear", "nn", "random", "reduction", "slicing",
]
