"""Kernels that count elements by their value, row by row, of dense, sparse and ragged tensors.

The result is dense (SparseBincount), or a sparse tensor with an element for each value that occurs in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from .const_inputs import integer
from .ragged import check_whole
from .segment import starts_of_runs
from .sparse_checks import check_inside

Run = Callable[..., Any]
LARGEST_INT64 = np.iinfo(np.int64).max


def sparse_bincount(b: Bind) -> Run:
    """Counts in bins of the rows of a sparse tensor; a vector has one row. Elements of `size` or more are not
    counted."""
    bins, is_binary, dtype = integer(b, 3), b.attrs["binary_output"], b.attrs["T"].numpy

    def run(indices: Array, values: Array, shape: Array, _: Array, weights: Array) -> Array:
        check_inside(indices, shape)
        _check_values(values, weights)
        rows, lead = _rows_of(indices, shape)
        b.ask(int(np.prod(lead, dtype=object)) * bins * dtype.itemsize, "a tensor of counts")
        out = np.zeros((*lead, bins), dtype)
        counted = values < bins
        at = (rows[counted], values[counted]) if lead else values[counted]
        if is_binary:
            out[at] = 1
        else:
            np.add.at(out, at, weights[counted] if weights.size else dtype.type(1))
        return out

    return run


def _rows_of(indices: Array, shape: Array) -> tuple[Array, list[int]]:
    """The row of each element, and the result's shape in front of the bins."""
    if (shape < 0).any():
        raise errors.InvalidArgument(f"the shape {shape.tolist()} has a negative length")
    if len(shape) == 1:
        return np.zeros(len(indices), np.int64), []
    return indices[:, 0], [int(shape[0])]


def _check_values(values: Array, weights: Array) -> None:
    if (values < 0).any():
        raise errors.InvalidArgument(f"Input values must all be non-negative, but one is {values.min()}")
    if weights.size and weights.shape != values.shape:
        raise errors.InvalidArgument(f"Weights and values must have the same shape, given {list(weights.shape)} and "
                                     f"{list(values.shape)}")


def count_dense(b: Bind) -> Run:
    count = _counter(b)

    def run(values: Array, weights: Array) -> tuple[Array, Array, Array]:
        _check_values(values, weights)
        rows = np.repeat(np.arange(len(values)), values.shape[1]) if values.ndim == 2 else None
        return count(rows, len(values), values.reshape(-1), weights.reshape(-1))

    return run


def count_sparse(b: Bind) -> Run:
    count = _counter(b)

    def run(indices: Array, values: Array, shape: Array, weights: Array) -> tuple[Array, Array, Array]:
        check_inside(indices, shape)
        _check_values(values, weights)
        if len(shape) == 1:
            return count(None, 1, values, weights)
        return count(indices[:, 0], int(shape[0]), values, weights)

    return run


def count_ragged(b: Bind) -> Run:
    count = _counter(b)

    def run(splits: Array, values: Array, weights: Array) -> tuple[Array, Array, Array]:
        _check_values(values, weights)
        check_whole([splits], len(values))
        return count(np.repeat(np.arange(len(splits) - 1), np.diff(splits)), len(splits) - 1, values, weights)

    return run


def _counter(b: Bind) -> Callable[[Array | None, int, Array, Array], tuple[Array, Array, Array]]:
    """A function from the elements' rows (None: there is one row, without an index), the number of rows, values and
    weights to a sparse tensor of counts."""
    least, limit, dtype = b.attrs["minlength"], b.attrs["maxlength"], b.attrs["output_type"].numpy
    is_binary = b.attrs["binary_output"]

    def count(rows: Array | None, row_count: int, values: Array, weights: Array) -> tuple[Array, Array, Array]:
        if not row_count and rows is not None:
            raise errors.InvalidArgument("a tensor without rows has no counts")
        width = limit if limit >= 0 else max(int(values.max(initial=0)) + 1, least)
        if width > LARGEST_INT64:
            raise errors.InvalidArgument(f"values must be at most {LARGEST_INT64 - 1}, given {width - 1}")
        is_counted = values < width
        keys = values[is_counted, None].astype(np.int64)
        if rows is not None:
            keys = np.column_stack([rows[is_counted], keys])
        order = np.lexsort(keys.T[::-1])
        starts = starts_of_runs(keys[order]) if len(order) else order
        totals = np.ones(len(starts), dtype)
        if not is_binary and len(order):
            amounts = weights[is_counted][order] if weights.size else np.ones(len(order), dtype)
            totals = np.add.reduceat(amounts, starts, dtype=dtype)
        shape = [width] if rows is None else [row_count, width]
        return keys[order][starts], totals, np.array(shape, np.int64)

    return count


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SparseBincount", allocates=True)(sparse_bincount)
    kernels.kernel("DenseCountSparseOutput", allocates=True)(count_dense)
    kernels.kernel("SparseCountSparseOutput", allocates=True)(count_sparse)
    kernels.kernel("RaggedCountSparseOutput", allocates=True)(count_ragged)
