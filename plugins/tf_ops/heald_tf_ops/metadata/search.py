"""Metadata of ops that find positions: of non-zero elements, and of elements among sorted ones."""

from __future__ import annotations

from itertools import pairwise

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info

from .rules import rule
from .shapes import dims_of_rank, same_dim


@rule("Where")
def where(_: Attrs, x: ValueInfo) -> ValueInfo:
    if x.rank == 0:
        raise InvalidArgument("Where needs at least 1 dimension, given a scalar")
    return info(dtypes.int64, (None, x.rank))


@rule("Bucketize")
def bucketize(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    if any(a > b for a, b in pairwise(attrs["boundaries"])):
        raise InvalidArgument(f"Expected sorted boundaries, given {list(attrs['boundaries'])}")
    return info(dtypes.int32, x.shape)


@rule("LowerBound", "UpperBound")
def search_bound(attrs: Attrs, sorted_inputs: ValueInfo, values: ValueInfo) -> ValueInfo:
    batch, _ = dims_of_rank(sorted_inputs, 2, "sorted_inputs")
    other_batch, count = dims_of_rank(values, 2, "values")
    return info(attrs["out_type"], (same_dim(batch, other_batch, "the rows of sorted_inputs and values"), count))


@rule("InvertPermutation")
def invert_permutation(_: Attrs, x: ValueInfo) -> ValueInfo:
    return info(x.dtype, dims_of_rank(x, 1, "a permutation"))
