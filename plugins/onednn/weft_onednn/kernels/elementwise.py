"""Functions of elements."""

from __future__ import annotations

from weft.api import Kernels

from ..functions import BINARY, UNARY
from .binding import left_to_numpy


def register(kernels: Kernels) -> None:
    for op in (*UNARY, *BINARY, "BiasAdd"):
        kernels.kernel(op, dtypes={"T": "float32"})(left_to_numpy)
