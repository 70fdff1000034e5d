"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from . import (
    array,
    counting,
    elementwise,
    joining,
    linear,
    nn,
    order,
    ragged,
    reduction,
    scan,
    search,
    segment,
    sets,
    slicing,
    sparse,
)
from .rules import RULES

__all__ = [
    "RULES",
    "array",
    "counting",
    "elementwise",
    "joining",
    "linear",
    "nn",
    "order",
    "ragged",
    "reduction",
    "scan",
    "search",
    "segment",
    "sets",
    "slicing",
    "sparse",
]
