"""Metadata of feature crosses: combinations of the values of sparse, ragged and dense columns, row by row."""

from __future__ import annotations

from heald.api import Attrs, DType, InvalidArgument, ValueInfo, dtypes, info

from .rules import rule
from .shapes import check_single, dims_of_rank, same_dim
from .sparse import sparse

Results = tuple[ValueInfo, ...]


@rule("SparseCross")
def sparse_cross(attrs: Attrs, *columns: ValueInfo) -> Results:
    wrong = {t for t in (*attrs["sparse_types"], *attrs["dense_types"]) if t is not dtypes.string}
    if attrs["internal_type"] is dtypes.string and wrong:
        raise InvalidArgument(f"Input values should be of internal type string but received {wrong.pop()}")
    _check_columns(attrs, columns)
    return _crosses(attrs["out_type"])


def _check_columns(attrs: Attrs, columns: Results) -> None:
    count = attrs["N"]
    if len(attrs["sparse_types"]) != count:
        raise InvalidArgument(f"sparse_types must have {count} elements, given {len(attrs['sparse_types'])}")
    for parts in zip(columns[:count], columns[count : 2 * count], columns[2 * count : 3 * count], strict=True):
        _check_sparse(*parts)
    for dense in columns[3 * count :]:
        dims_of_rank(dense, 2, "a dense column")


def _check_sparse(indices: ValueInfo, values: ValueInfo, shape: ValueInfo) -> None:
    sparse(indices, values, shape)
    same_dim(dims_of_rank(shape, 1, "the shape of a column")[0], 2, "the rank of a sparse column and 2")


def _crosses(dtype: DType) -> Results:
    return info(dtypes.int64, (None, 2)), info(dtype, (None,)), info(dtypes.int64, (2,))


@rule("SparseCrossV2")
def sparse_cross_v2(attrs: Attrs, *inputs: ValueInfo) -> Results:
    _check_columns(attrs, inputs[:-1])
    check_single(inputs[-1], "sep")
    return _crosses(dtypes.string)


@rule("SparseCrossHashed")
def sparse_cross_hashed(attrs: Attrs, *inputs: ValueInfo) -> Results:
    *columns, buckets, is_strong, salt = inputs
    _check_columns(attrs, tuple(columns))
    check_single(buckets, "num_buckets", most_rank=1)
    check_single(is_strong, "strong_hash", most_rank=1)
    if salt.meta.is_static and salt.size != 2:
        raise InvalidArgument(f"salt must have length 2 but has {salt.size} elements")
    return _crosses(dtypes.int64)


@rule("RaggedCross")
def ragged_cross(attrs: Attrs, *inputs: ValueInfo) -> Results:
    ragged, sparse_count = len(attrs["ragged_values_types"]), attrs["Nsparse"]
    if len(attrs["ragged_splits_types"]) != ragged or len(attrs["sparse_values_types"]) != sparse_count:
        raise InvalidArgument("values and splits of ragged columns, and values of sparse ones, must be equally many")
    rows: int | None = None
    for values, splits in zip(inputs[:ragged], inputs[ragged : 2 * ragged], strict=True):
        dims_of_rank(values, 1, "the values of a ragged column")
        (bounds,) = dims_of_rank(splits, 1, "the splits of a ragged column")
        if bounds == 0:
            raise InvalidArgument("ragged splits must not be empty")
        rows = same_dim(rows, None if bounds is None else bounds - 1, "the numbers of rows of columns")
    sparse_parts = inputs[2 * ragged : 2 * ragged + 3 * sparse_count]
    for i in range(sparse_count):
        _check_sparse(*sparse_parts[i::sparse_count])
    for dense in inputs[2 * ragged + 3 * sparse_count :]:
        rows = same_dim(rows, dims_of_rank(dense, 2, "a dense column")[0], "the numbers of rows of columns")
    splits_type = attrs["out_row_splits_type"]
    return info(attrs["out_values_type"], (None,)), info(splits_type, (None if rows is None else rows + 1,))
