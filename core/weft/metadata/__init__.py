"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from . import (
    array,
    blocks,
    broadcasting,
    diagonal,
    elementwise,
    filling,
    indexed,
    joining,
    linear,
    nn,
    quantize,
    reduction,
    reordering,
    slicing,
)
from .rules import RULES

__all__ = [
    "RULES",
    "array",
    "blocks",
    "broadcasting",
    "diagonal",
    "elementwise",
    "filling",
    "indexed",
    "joining",
    "linear",
    "nn",
    "quantize",
    "reduction",
    "reordering",
    "slicing",
]
