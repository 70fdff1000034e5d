"""Kernels of matrix and vector products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from weft.api import Bind, Kernels, dtypes

from .element_types import REAL

Run = Callable[..., None]
HALVES = (dtypes.float16, dtypes.bfloat16)


def matmul(b: Bind) -> Run:
    def operand(x: Any, turned: bool) -> Any:
        return x.T if turned else x

    return _product(b, operand, b.attrs["transpose_a"], b.attrs["transpose_b"])


def batch_matmul(b: Bind) -> Run:
    def operand(x: Any, adjoint: bool) -> Any:
        return x.swapaxes(-2, -1).conj() if adjoint else x

    return _product(b, operand, b.attrs["adj_x"], b.attrs["adj_y"])


def _product(b: Bind, operand: Callable[[Any, bool], Any], turn_x: bool, turn_y: bool) -> Run:
    if b.attrs["T"] in HALVES:
        return _half_product(b, operand, turn_x, turn_y)
    return lambda x, y, out: np.matmul(operand(x, turn_x), operand(y, turn_y), out=out)


def _half_product(b: Bind, operand: Callable[[Any, bool], Any], turn_x: bool, turn_y: bool) -> Run:
    """Multiplied and summed in float32, rounded once."""
    weights = b.inputs[1].value
    known = None
    if weights is not None:
        known = b.prepared("cpu/matmul", lambda: operand(weights.astype(np.float32), turn_y))

    def run(x: Any, y: Any, out: Any) -> None:
        right = known if known is not None else operand(y.astype(np.float32), turn_y)
        out[...] = np.matmul(operand(x.astype(np.float32), turn_x), right)

    return run


def cross(_: Bind) -> Run:
    turns = ((1, 2), (2, 0), (0, 1))

    def run(x: Any, y: Any, out: Any) -> None:
        for i, (j, k) in enumerate(turns):
            out[..., i] = x[..., j] * y[..., k] - x[..., k] * y[..., j]

    return run


def register(kernels: Kernels) -> None:
    kernels.kernel("MatMul")(matmul)
    kernels.kernel("BatchMatMulV2")(batch_matmul)
    kernels.kernel("Cross", dtypes={"T": REAL})(cross)
