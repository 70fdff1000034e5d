"""Metadata of ops on sparse tensors: indices [n, rank], values [n] and the dense shape [rank]."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import axis_in, dims_of_rank, same_dim, same_shape, vector


@rule("SparseToDense", values=("output_shape",))
def sparse_to_dense(
    _: Attrs, indices: ValueInfo, output_shape: ValueInfo, values: ValueInfo, default_value: ValueInfo
) -> ValueInfo:
    """A vector output also takes indices as a vector or a scalar. A scalar value applies to all indices."""
    dims_of_rank(default_value, 0, "default_value")
    shape = _lengths(output_shape, "output_shape")
    if indices.shape is None:
        return info(values.dtype, shape)
    if len(indices.shape) > 2:
        raise InvalidArgument(f"sparse_indices must be a scalar, vector or matrix, given {shape_text(indices.shape)}")
    count, rank, *_rest = (*indices.shape, 1, 1)
    same_dim(rank, None if shape is None else len(shape), "the elements of an index and the length of output_shape")
    if values.rank != 0:
        (value_count,) = dims_of_rank(values, 1, "sparse_values")
        same_dim(count, value_count, "the number of indices and of values")
    return info(values.dtype, shape)


@rule("SparseReorder")
def sparse_reorder(
    _: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo
) -> tuple[ValueInfo, ValueInfo]:
    count, rank = sparse(indices, values, shape)
    return info(dtypes.int64, (count, rank)), info(values.dtype, (count,))


@rule("SparseReshape")
def sparse_reshape(_: Attrs, indices: ValueInfo, shape: ValueInfo, new_shape: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    count, rank = dims_of_rank(indices, 2, "input_indices")
    same_shape(((rank,), dims_of_rank(shape, 1, "input_shape")), "an index must have an element for each dimension")
    new_shape_length = dims_of_rank(new_shape, 1, "new_shape")
    return info(dtypes.int64, (count, *new_shape_length)), info(dtypes.int64, new_shape_length)


@rule("SparseConcat")
def sparse_concat(attrs: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ValueInfo, ValueInfo]:
    parts = len(inputs) // 3
    counts, ranks = zip(*(sparse(*inputs[i::parts]) for i in range(parts)), strict=True)
    (rank,) = same_shape([(r,) for r in ranks], "Ranks of all inputs must match") or (None,)
    if rank is not None and not -rank <= attrs["concat_dim"] < rank:
        raise InvalidArgument(f"concat_dim must be in range [{-rank}, {rank}), got {attrs['concat_dim']}")
    total = None if None in counts else sum(counts)
    return info(dtypes.int64, (total, rank)), info(inputs[parts].dtype, (total,)), info(dtypes.int64, (rank,))


@rule("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    _: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, default_value: ValueInfo
) -> tuple[ValueInfo, ...]:
    dims_of_rank(default_value, 0, "default_value")
    count, rank = sparse(indices, values, shape)
    if rank == 0:
        raise InvalidArgument("Dense shape cannot be empty")
    return (info(dtypes.int64, (None, rank)), info(values.dtype, (None,)), info(dtypes.bool_, (None,)),
            info(dtypes.int64, (count,)))


@rule("SparseSoftmax")
def sparse_softmax(_: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo) -> ValueInfo:
    count, rank = sparse(indices, values, shape)
    if rank is not None and rank < 2:
        raise InvalidArgument(f"expected a sparse tensor of rank 2 or more, given rank {rank}")
    return info(values.dtype, (count,))


@rule("SparseTensorDenseMatMul", values=("a_shape",))
def sparse_dense_matmul(
    attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, b: ValueInfo
) -> ValueInfo:
    _, rank = sparse(indices, values, shape)
    same_dim(rank, 2, "the rank of a and 2")
    rows, inner = (_lengths(shape, "a_shape") or (None, None))[:: -1 if attrs["adjoint_a"] else 1]
    other_inner, columns = dims_of_rank(b, 2, "b")[:: -1 if attrs["adjoint_b"] else 1]
    same_dim(inner, other_inner, "the inner dimensions of a product")
    return info(b.dtype, (rows, columns))


@rule("SparseReduceSum", "SparseReduceMax", values=("input_shape", "reduction_axes"))
def sparse_reduce(
    attrs: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo, axes: ValueInfo
) -> ValueInfo:
    """Return the dense result. Axes may repeat."""
    _, rank = sparse(indices, values, shape)
    if axes.rank is not None and axes.rank > 1:
        raise InvalidArgument(f"reduction_axes must be a scalar or a vector, given shape {shape_text(axes.shape)}")
    lengths = _lengths(shape, "input_shape")
    distinct_axes = axes.distinct()
    if distinct_axes is None or rank is None:
        return info(values.dtype, None)
    dropped = {axis_in(axis, rank, "reduction_axes") for axis in distinct_axes.reshape(-1).tolist()}
    lengths = lengths or (None,) * rank
    if attrs["keep_dims"]:
        return info(values.dtype, tuple(1 if axis in dropped else lengths[axis] for axis in range(rank)))
    return info(values.dtype, tuple(lengths[axis] for axis in range(rank) if axis not in dropped))


def _lengths(shape: ValueInfo, name: str) -> Shape:
    lengths = vector(shape, name)
    if any(length is not None and length < 0 for length in lengths or ()):
        raise InvalidArgument(f"{name} must not be negative, given {shape_text(lengths)}")
    return lengths


def sparse(indices: ValueInfo, values: ValueInfo, shape: ValueInfo) -> tuple[int | None, int | None]:
    """Return the number of a sparse tensor's elements, and its rank.

    Raises InvalidArgument for parts that do not fit.
    """
    count, rank = dims_of_rank(indices, 2, "the indices of a sparse tensor")
    (values_count,) = dims_of_rank(values, 1, "the values of a sparse tensor")
    (shape_rank,) = dims_of_rank(shape, 1, "the shape of a sparse tensor")
    return (same_dim(count, values_count, "the number of indices and of values"),
            same_dim(rank, shape_rank, "the elements of an index and the length of the shape"))
