"""Kernels of matrix and vector products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, CooTensor, Kernels, TensorMetadata, dtypes

from ..element_types import REAL, Array
from .activations import FUSED
from .staging import FINGERPRINT

Run = Callable[..., None]
Step = Callable[[Any], Any]
HALVES = (dtypes.float16, dtypes.bfloat16)


def matmul(b: Bind) -> Run:
    return _product(b, _transposition(b.attrs["transpose_a"]), _transposition(b.attrs["transpose_b"]))


def batch_matmul(b: Bind) -> Run:
    return _product(b, _adjoint(b.attrs["adj_x"]), _adjoint(b.attrs["adj_y"]))


def _same(x: Any) -> Any:
    return x


def _transposition(turned: bool) -> Step:
    return (lambda x: x.T) if turned else _same


def _adjoint(turned: bool) -> Step:
    return (lambda x: x.swapaxes(-2, -1).conj()) if turned else _same


def _product(b: Bind, left: Step, right: Step) -> Run:
    within = _sum_dtype(b)
    if {b.outputs[0].dtype.numpy, *(x.dtype.numpy for x in b.inputs)} == {within}:
        if left is _same and right is _same:
            return np.matmul
        return lambda x, y, out: np.matmul(left(x), right(y), out)
    multiply = _wide_product(b, left, right)
    return lambda x, y, out: np.copyto(out, multiply(x, y), casting="unsafe")


def _sum_dtype(b: Bind) -> np.dtype[Any]:
    """The dtype of products and sums: float32 for two-byte floats, rounded once, and int32 for bytes."""
    dtype = b.outputs[0].dtype
    return np.dtype(np.float32) if dtype in HALVES else dtype.numpy


def _wide_product(b: Bind, left: Step, right: Step) -> Callable[[Any, Any], Any]:
    within, weights = _sum_dtype(b), b.inputs[1]

    def widen_weights() -> Any:
        assert weights.value is not None
        return right(weights.value.astype(within))

    widened_weights: Any = None
    if weights.is_known:
        shape = right(np.broadcast_to(np.zeros((), within), weights.meta.dims)).shape  # without memory
        widened_weights = b.prepared("cpu/matmul", widen_weights, fingerprint=FINGERPRINT,
                                     meta=TensorMetadata(dtypes.of_numpy(within), shape))

    def multiply(x: Any, y: Any) -> Any:
        return np.matmul(left(x.astype(within, copy=False)),
                         widened_weights if widened_weights is not None else right(y.astype(within, copy=False)))

    return multiply


def fused_matmul(b: Bind) -> Any:
    """_FusedMatMul: a product, its bias, other addends, and an activation, in float32."""
    _, *function_names = b.attrs["fused_ops"]
    if function_names == ["GeluExact"]:
        return b.decline("this kernel has no exact GELU")
    multiply = _wide_product(b, _transposition(b.attrs["transpose_a"]), _transposition(b.attrs["transpose_b"]))
    activate = FUSED[function_names[0]](b.attrs) if function_names and function_names[0] in FUSED else None

    def run(x: Any, y: Any, bias: Any, *addend_and_out: Any) -> None:
        total = multiply(x, y)
        for addend in (bias, *addend_and_out[:-1]):
            total += addend.astype(np.float32, copy=False)
        if activate is not None:
            activate(total, total)
        np.copyto(addend_and_out[-1], total, casting="unsafe")

    return run


def coo_matmul(b: Bind) -> Callable[[CooTensor, Array], Array]:
    """The product of a sparse and a dense matrix."""
    from .segment import add_rows  # imported late: dense products need no sums over rows

    transpose_a, transpose_b = b.attrs["transpose_a"], b.attrs["transpose_b"]
    meta, within = b.outputs[0], _sum_dtype(b)

    def run(a: CooTensor, dense: Array) -> Array:
        b.ask(meta.nbytes, "the product")
        out: Array = np.zeros(meta.dims, meta.dtype.numpy)
        rows, columns = a.indices.T[:: -1 if transpose_a else 1]
        order = rows.argsort(kind="stable")
        picked = (dense.T if transpose_b else dense)[columns[order]]
        add_rows(a.values[order, None].astype(within, copy=False) * picked, rows[order], out)
        return out

    return run


def cross(_: Bind) -> Run:
    turns = ((1, 2), (2, 0), (0, 1))

    def run(x: Any, y: Any, out: Any) -> None:
        for i, (j, k) in enumerate(turns):
            out[..., i] = x[..., j] * y[..., k] - x[..., k] * y[..., j]

    return run


def conjugate_transpose(b: Bind) -> Run:
    order = b.inputs[1].value
    assert order is not None
    axes = tuple(int(axis) for axis in order)
    if b.outputs[0].dtype.kind == "c":
        return lambda x, _, out: np.conjugate(x.transpose(axes), out=out)
    return lambda x, _, out: np.copyto(out, x.transpose(axes))


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("MatMul")(matmul)
    kernels.kernel("MatMul", layouts={"a": "coo"})(coo_matmul)
    kernels.kernel("_FusedMatMul")(fused_matmul)
    for op in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
        kernels.kernel(op)(batch_matmul)
    kernels.kernel("ConjugateTranspose")(conjugate_transpose)
    kernels.kernel("Cross", dtypes={"T": REAL})(cross)
