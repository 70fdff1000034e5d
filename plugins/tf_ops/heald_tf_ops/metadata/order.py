"""Metadata of ops that order the elements of each row: the largest ones, the n-th."""

from __future__ import annotations

from heald.api import Attrs, DType, InvalidArgument, Shape, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import count_in, dims_of_rank, same_dim, single_integer


@rule("TopK")
def top_k(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    return _largest(x, attrs["k"], dtypes.int32)


@rule("TopKV2", values=("k",))
def top_k_v2(attrs: Attrs, x: ValueInfo, k: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    return _largest(x, single_integer(k, "k"), attrs["index_type"])


def _largest(x: ValueInfo, k: int | None, index_type: DType) -> tuple[ValueInfo, ValueInfo]:
    rows = _rows(x, "input")
    if k is not None and k < 0:
        raise InvalidArgument(f"Need k >= 0, got {k}")
    if x.shape is not None and k is not None and (columns := x.shape[-1]) is not None and columns < k:
        raise InvalidArgument(f"input must have at least k columns. Had {columns}, needed {k}")
    if x.shape is not None and (x.shape[-1] or 0) > (largest_index := (1 << 8 * index_type.itemsize - 1) - 1):
        raise InvalidArgument(f"input must have at most {largest_index} columns for indices of type {index_type}, "
                              f"given {x.shape[-1]}")
    shape = None if rows is None else (*rows, k)
    return info(x.dtype, shape), info(index_type, shape)


@rule("NthElement", values=("n",))
def nth_element(_: Attrs, x: ValueInfo, n: ValueInfo) -> ValueInfo:
    rows, position = _rows(x, "input"), count_in(n, "n")
    if x.shape is not None and position is not None and (columns := x.shape[-1]) is not None and columns <= position:
        raise InvalidArgument(f"input must have last dimension > n = {position}, given {shape_text(x.shape)}")
    return info(x.dtype, rows)


def _rows(x: ValueInfo, name: str) -> Shape:
    if x.rank == 0:
        raise InvalidArgument(f"{name} must be >= 1-D, got shape []")
    return None if x.shape is None else x.shape[:-1]


@rule("InTopK")
def in_top_k(_: Attrs, predictions: ValueInfo, targets: ValueInfo) -> ValueInfo:
    batch, _classes = dims_of_rank(predictions, 2, "predictions")
    (count,) = dims_of_rank(targets, 1, "targets")
    return info(dtypes.bool_, (same_dim(batch, count, "the first dimension of predictions and targets"),))


@rule("InTopKV2")
def in_top_k_v2(attrs: Attrs, predictions: ValueInfo, targets: ValueInfo, k: ValueInfo) -> ValueInfo:
    dims_of_rank(k, 0, "k")
    return in_top_k(attrs, predictions, targets)
