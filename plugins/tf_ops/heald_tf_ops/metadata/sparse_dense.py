"""Metadata of ops on a sparse tensor and a dense one, and of reductions whose result is sparse."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .linear import matmul
from .rules import rule
from .shapes import dims_of_rank, same_dim
from .sparse import sparse

Results = tuple[ValueInfo, ...]


@rule("SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul")
def sparse_dense_elementwise(
    _attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, dense: ValueInfo
) -> ValueInfo:
    _, rank = sparse(indices, values, shape)
    if rank is not None and dense.rank is not None and dense.rank > rank:
        raise InvalidArgument(f"only a dense tensor is broadcast; its rank {dense.rank} is more than that of the "
                              f"sparse one, {rank}")
    return info(values.dtype, dims_of_rank(indices, 2, "sp_indices")[:1])


@rule("SparseTensorDenseAdd")
def sparse_tensor_dense_add(
    _attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, dense: ValueInfo
) -> ValueInfo:
    _, rank = sparse(indices, values, shape)
    same_dim(rank, dense.rank, "the ranks of both operands")
    if dense.rank is not None and not 1 <= dense.rank <= 5:
        raise InvalidArgument(f"Only tensors with ranks between 1 and 5 are currently supported, given "
                              f"{shape_text(dense.shape)}")
    return info(dense.dtype, dense.shape)


@rule("SparseReduceMaxSparse", "SparseReduceSumSparse")
def sparse_reduce_to_sparse(
    _: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, axes: ValueInfo
) -> Results:
    sparse(indices, values, shape)
    if axes.rank is not None and axes.rank > 1:
        raise InvalidArgument(f"reduction_axes must be a scalar or a vector, given {shape_text(axes.shape)}")
    return info(dtypes.int64, (None, None)), info(values.dtype, (None,)), info(dtypes.int64, (None,))


@rule("RaggedFillEmptyRowsGrad", "SparseFillEmptyRowsGrad")
def sparse_fill_empty_rows_gradient(_: Attrs, places: ValueInfo, gradients: ValueInfo) -> Results:
    dims_of_rank(gradients, 1, "grad_values")
    return info(gradients.dtype, dims_of_rank(places, 1, "reverse_index_map")), info(gradients.dtype, ())


@rule("SparseMatMul")
def sparse_matmul(attrs: Attrs, a: ValueInfo, b: ValueInfo) -> ValueInfo:
    return info(dtypes.float32, matmul(attrs, a, b).shape)
