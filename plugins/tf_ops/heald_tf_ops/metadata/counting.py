"""Metadata of ops that count elements by their value."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, info, shape_text

from .rules import rule
from .shapes import count_in, dims_of_rank, same_dim, same_shape


@rule("Bincount", values=("size",))
def bincount(_: Attrs, arr: ValueInfo, size: ValueInfo, weights: ValueInfo) -> ValueInfo:
    """Weights have as many elements as `arr`, in any shape, or none."""
    if weights.meta.is_static and weights.size and arr.meta.is_static:
        same_dim(arr.size, weights.size, "the numbers of elements and of weights")
    return info(weights.dtype, (count_in(size, "size"),))


@rule("DenseBincount", values=("size",))
def dense_bincount(_: Attrs, x: ValueInfo, size: ValueInfo, weights: ValueInfo) -> ValueInfo:
    if x.rank is not None and x.rank > 2:
        raise InvalidArgument(f"input must be at most rank 2, given {shape_text(x.shape)}")
    if weights.meta.is_static and weights.size:
        same_shape((x.shape, weights.shape), "weights must have the shape of the input, or be empty")
    count = count_in(size, "size")
    if x.shape is None or count is None:
        return info(weights.dtype, None if x.rank is None else (None,) * max(x.rank, 1))
    return info(weights.dtype, (*x.shape[:-1], count))


@rule("RaggedBincount", values=("size",))
def ragged_bincount(_: Attrs, splits: ValueInfo, x: ValueInfo, size: ValueInfo, weights: ValueInfo) -> ValueInfo:
    """Return a row of counts for each row of the ragged tensor. Weights are as many as its values, or none."""
    (bounds,) = dims_of_rank(splits, 1, "splits")
    if bounds == 0:
        raise InvalidArgument("Splits must be non-empty")
    if weights.meta.is_static and weights.size and x.meta.is_static:
        same_dim(x.size, weights.size, "the numbers of values and of weights")
    return info(weights.dtype, (None if bounds is None else bounds - 1, count_in(size, "size")))


@rule("HistogramFixedWidth", values=("nbins",))
def histogram(attrs: Attrs, _values: ValueInfo, value_range: ValueInfo, nbins: ValueInfo) -> ValueInfo:
    (length,) = dims_of_rank(value_range, 1, "value_range")
    same_dim(length, 2, "the length of value_range and 2")
    return info(attrs["dtype"], (count_in(nbins, "nbins", least=1),))
