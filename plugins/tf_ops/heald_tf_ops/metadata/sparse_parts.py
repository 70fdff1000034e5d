"""Metadata of ops that merge sparse tensors element by element, and that cut them into parts."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info

from .rules import rule
from .shapes import check_single, dims_of_rank, same_dim
from .sparse import sparse

Results = tuple[ValueInfo, ...]


@rule("SparseAdd")
def sparse_add(
    _: Attrs, a: ValueInfo, a_values: ValueInfo, a_shape: ValueInfo, b: ValueInfo, b_values: ValueInfo,
    b_shape: ValueInfo, limit: ValueInfo,
) -> Results:
    rank = _rank_of_both((a, a_values, a_shape), (b, b_values, b_shape))
    if rank == 0:
        raise InvalidArgument("a sparse sum must have at least rank 1")
    dims_of_rank(limit, 0, "thresh")
    return info(dtypes.int64, (None, rank)), info(a_values.dtype, (None,)), info(dtypes.int64, (rank,))


@rule("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_extreme(_: Attrs, *inputs: ValueInfo) -> Results:
    _rank_of_both(inputs[:3], inputs[3:])
    return info(dtypes.int64, (None, None)), info(inputs[1].dtype, (None,))


def _rank_of_both(a: Results, b: Results) -> int | None:
    return same_dim(sparse(*a)[1], sparse(*b)[1], "the ranks of both operands")


@rule("SparseAddGrad")
def sparse_add_gradient(_: Attrs, gradient: ValueInfo, a: ValueInfo, b: ValueInfo, total: ValueInfo) -> Results:
    (count,) = dims_of_rank(gradient, 1, "backprop_val_grad")
    counts, ranks = zip(*(dims_of_rank(x, 2, "the indices of a sparse tensor") for x in (a, b, total)), strict=True)
    same_dim(same_dim(ranks[0], ranks[1], "the ranks of a and b"), ranks[2], "the ranks of operands and sum")
    same_dim(count, counts[2], "the numbers of gradients and of the sum's elements")
    return info(gradient.dtype, (counts[0],)), info(gradient.dtype, (counts[1],))


@rule("SparseSlice")
def sparse_slice(
    _attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, start: ValueInfo, size: ValueInfo
) -> Results:
    _, rank = sparse(indices, values, shape)
    for vector, name in ((start, "start"), (size, "size")):
        same_dim(rank, dims_of_rank(vector, 1, name)[0], f"the rank and the length of {name}")
    (rank,) = dims_of_rank(shape, 1, "shape")
    return info(dtypes.int64, (None, rank)), info(values.dtype, (None,)), info(dtypes.int64, (rank,))


@rule("SparseSliceGrad")
def sparse_slice_gradient(
    _: Attrs, gradient: ValueInfo, indices: ValueInfo, start: ValueInfo, of_slice: ValueInfo
) -> ValueInfo:
    (count,) = dims_of_rank(gradient, 1, "backprop_val_grad")
    (elements, rank), (picked, slice_rank) = (dims_of_rank(x, 2, "the indices of a sparse tensor")
                                              for x in (indices, of_slice))
    same_dim(rank, slice_rank, "the ranks of input and output")
    same_dim(rank, dims_of_rank(start, 1, "input_start")[0], "the rank and the length of input_start")
    same_dim(count, picked, "the numbers of gradients and of the slice's elements")
    return info(gradient.dtype, (elements,))


@rule("SparseSplit")
def sparse_split(
    attrs: Attrs, split_dim: ValueInfo, indices: ValueInfo, values: ValueInfo, shape: ValueInfo
) -> Results:
    check_single(split_dim, "split_dim")
    sparse(indices, values, shape)
    (rank,) = dims_of_rank(shape, 1, "shape")
    parts = info(dtypes.int64, (None, rank)), info(values.dtype, (None,)), info(dtypes.int64, (rank,))
    return tuple(part for part in parts for _ in range(attrs["num_split"]))
