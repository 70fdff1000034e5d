"""The kernels. heald imports this module when a device of type CPU is first opened.

Softplus is a plain function. Softmax has memory of its own in each frame. MatMul packs constant weights once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from heald.api import Bind, Declined, Kernels

Array = np.ndarray[Any, Any]
FLOATS = ("float32", "float64")


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Softplus", dtypes={"T": FLOATS})(lambda _: softplus)
    kernels.kernel("Softmax", dtypes={"T": FLOATS})(softmax)
    kernels.kernel("MatMul", dtypes={"T": FLOATS}, when=lambda attrs: not attrs["transpose_a"])(matmul)


def softplus(x: Array, out: Array) -> None:
    """Write log(1 + exp(x)), in a form that never overflows."""
    np.logaddexp(x, 0, out)


def softmax(b: Bind) -> Softmax | Declined:
    if b.outputs[0].size == 0:
        return b.decline("the tensor has no elements")
    return Softmax()


class Softmax:
    """exp(x - max) / sum(exp(x - max)) of each row. `attach` allocates the rows' maxima and sums once per frame."""

    how = "in three passes"

    def run(self, x: Array, out: Array) -> None:
        self._compute(x, out, np.empty_like(x[..., :1]))

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        (x,), (out,) = inputs, outputs
        return partial(self._compute, x, out, np.empty_like(x[..., :1]))

    def _compute(self, x: Array, out: Array, rows: Array) -> None:
        np.max(x, -1, rows, keepdims=True)
        np.subtract(x, rows, out)
        np.exp(out, out)
        np.sum(out, -1, None, rows, keepdims=True)
        np.divide(out, rows, out)


def matmul(b: Bind) -> MatMul | Declined:
    weights = b.inputs[1].value
    if weights is None:
        return b.decline("the second matrix is not constant")
    columns = weights if b.attrs["transpose_b"] else weights.T
    return MatMul(b.prepared("outsider_kernels-1/columns", lambda: np.ascontiguousarray(columns)))


class MatMul:
    """A product with a constant matrix, which is kept by columns. No call reads the constant itself."""

    reads = (0,)

    def __init__(self, columns: Array) -> None:
        self._columns = columns
        self.nbytes = columns.nbytes

    def run(self, x: Array, _weights: Array, out: Array) -> None:
        np.matmul(x, self._columns.T, out)

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], None]:
        return partial(self.run, *inputs, *outputs)
