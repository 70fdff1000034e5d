"""Kernels of a sparse tensor and a dense one: sums and products at the sparse indices, and gradients that are dense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import NUMBERS, REAL, Array
from .index_checks import check_inside as check_below
from .sparse_checks import check_inside

Run = Callable[..., Any]


def elementwise(function: Callable[..., Any]) -> Callable[[Bind], Run]:
    """The bind function of SparseDenseCwise ops: the dense tensor is broadcast to the sparse one's shape, and counts
    at the sparse indices alone."""

    def run(indices: Array, values: Array, shape: Array, dense: Array, out: Array) -> None:
        if (shape < 0).any():
            raise errors.InvalidArgument(f"a shape must not be negative, given {shape.tolist()}")
        lengths = np.array(dense.shape, np.int64)
        inner = shape[len(shape) - dense.ndim :]
        if dense.ndim > len(shape) or ((lengths != inner) & (lengths != 1)).any():
            raise errors.InvalidArgument(f"only a dense tensor is broadcast, to the sparse one's shape; {dense.shape} "
                                         f"and {shape.tolist()} do not fit")
        check_inside(indices, shape)
        columns = indices[:, len(shape) - dense.ndim :] * (lengths > 1)
        function(values, dense[tuple(columns.T)], out)

    return lambda _: run


def _divide(values: Array, divisors: Array, out: Array) -> None:
    """Integers are divided toward zero."""
    if not divisors.all():
        raise errors.InvalidArgument("SparseDenseCwiseDiv cannot divide by zero, but the dense tensor has zeros")
    if out.dtype.kind in "iu":
        np.floor_divide(values - np.fmod(values, divisors), divisors, out=out)
    else:
        np.divide(values, divisors, out=out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "SparseDenseCwiseAdd": np.add, "SparseDenseCwiseDiv": _divide, "SparseDenseCwiseMul": np.multiply,
}


def add_to_dense(_: Bind) -> Run:
    """SparseTensorDenseAdd. An index that occurs twice adds twice."""

    def run(indices: Array, values: Array, shape: Array, dense: Array, out: Array) -> None:
        if tuple(shape) != dense.shape:
            raise errors.InvalidArgument(f"a shape {shape.tolist()} does not equal that of the dense tensor, "
                                         f"{list(dense.shape)}")
        check_inside(indices, shape)
        np.copyto(out, dense)
        np.add.at(out, tuple(indices.T), values)

    return run


def fill_empty_rows_gradient(b: Bind) -> Run:
    """SparseFillEmptyRowsGrad: gradients that no element of the input has belong to the default value."""
    wide = np.float32 if b.outputs[1].dtype.itemsize == 2 and b.outputs[1].dtype.kind == "f" else None

    def run(places: Array, gradients: Array, out: Array, out_default: Array) -> None:
        check_below(places, len(gradients), "reverse_index_map")
        is_default = np.ones(len(gradients), bool)
        is_default[places] = False
        np.copyto(out, gradients[places])
        out_default[...] = gradients[is_default].sum(dtype=wide or gradients.dtype)

    return run


def matmul(b: Bind) -> Run:
    """SparseMatMul: a product of dense matrices, whose zeros are skipped at best; float32 for bfloat16."""
    turns = b.attrs["transpose_a"], b.attrs["transpose_b"]

    def run(*arrays: Array) -> None:
        x, y = (np.asarray(a.T if turn else a, np.float32) for a, turn in zip(arrays, turns, strict=False))
        np.matmul(x, y, out=arrays[2])

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, function in FUNCTIONS.items():
        kernels.kernel(op, dtypes={"T": REAL})(elementwise(function))
    kernels.kernel("SparseTensorDenseAdd", dtypes={"T": NUMBERS})(add_to_dense)
    kernels.kernel("SparseFillEmptyRowsGrad", dtypes={"T": NUMBERS})(fill_empty_rows_gradient)
    kernels.kernel("SparseMatMul")(matmul)
