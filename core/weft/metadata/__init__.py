"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from . import (
    array,
    counting,
    elementwise,
    joining,
    linear,
    nn,
    order,
    parsing,
    ragged,
    reduction,
    scan,
    search,
    segment,
    sets,
    slicing,
    sparse,
    strings,
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
    "parsing",
    "ragged",
    "reduction",
    "scan",
    "search",
    "segment",
    "sets",
    "slicing",
    "sparse",
    "strings",
]
