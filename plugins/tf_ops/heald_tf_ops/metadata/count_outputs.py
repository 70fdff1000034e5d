"""Metadata of ops that count the values in rows of tensors, and of ops that fill empty rows of ragged tensors."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import count_in, dims_of_rank, same_dim
from .sparse import sparse

Results = tuple[ValueInfo, ...]


@rule("SparseBincount", values=("size",))
def sparse_bincount(
    attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, size: ValueInfo, weights: ValueInfo
) -> ValueInfo:
    sparse(indices, values, shape)
    _check_weights(weights, values)
    count_in(size, "size")
    return info(attrs["T"], None)


def _check_weights(weights: ValueInfo, values: ValueInfo) -> None:
    """Raise InvalidArgument unless there are no weights, or one for each value."""
    if weights.meta.is_static and values.meta.is_static and weights.size and weights.shape != values.shape:
        raise InvalidArgument(f"weights and values must have the same shape, given {shape_text(weights.shape)} and "
                              f"{shape_text(values.shape)}")


@rule("DenseCountSparseOutput")
def count_dense(attrs: Attrs, values: ValueInfo, weights: ValueInfo) -> Results:
    if values.rank not in (None, 1, 2):
        raise InvalidArgument(f"values must be a vector or a matrix, given {shape_text(values.shape)}")
    _check_weights(weights, values)
    return _counts(attrs, values.rank)


@rule("SparseCountSparseOutput")
def count_sparse(
    attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, weights: ValueInfo
) -> Results:
    rank = sparse(indices, values, shape)[1]
    if rank not in (None, 1, 2):
        raise InvalidArgument(f"values must be a vector or a matrix, given rank {rank}")
    _check_weights(weights, values)
    return _counts(attrs, dims_of_rank(indices, 2, "indices")[1])


@rule("RaggedCountSparseOutput")
def count_ragged(attrs: Attrs, splits: ValueInfo, values: ValueInfo, weights: ValueInfo) -> Results:
    (length,) = dims_of_rank(splits, 1, "splits")
    if length is not None and length < 2:
        raise InvalidArgument(f"splits must have at least 2 elements, given {length}")
    dims_of_rank(values, 1, "values")
    _check_weights(weights, values)
    return _counts(attrs, 2)


def _counts(attrs: Attrs, rank: int | None) -> Results:
    return info(dtypes.int64, (None, rank)), info(attrs["output_type"], (None,)), info(dtypes.int64, (rank,))


@rule("RaggedFillEmptyRows", values=("nrows",))
def ragged_fill_empty_rows(
    _: Attrs, rows: ValueInfo, values: ValueInfo, row_count: ValueInfo, default_value: ValueInfo
) -> Results:
    (count,), (values_count,) = dims_of_rank(rows, 1, "value_rowids"), dims_of_rank(values, 1, "values")
    same_dim(count, values_count, "the numbers of values and of their rows")
    dims_of_rank(default_value, 0, "default_value")
    if count_in(row_count, "nrows") == 0 and count:
        raise InvalidArgument(f"{count} values have no row, since nrows is 0")
    vector = info(dtypes.int64, (None,))
    return vector, info(values.dtype, (None,)), info(dtypes.bool_, (None,)), info(dtypes.int64, (count,))
