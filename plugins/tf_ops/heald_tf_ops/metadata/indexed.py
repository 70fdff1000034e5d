"""Metadata of ops that read or write elements or slices of a tensor, selected by an index tensor."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, info, shape_text

from .rules import rule
from .shapes import dims_of_rank, elements_in, same_dim, same_shape, shape_in

POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")


@rule("GatherNd")
def gather_nd(attrs: Attrs, params: ValueInfo, indices: ValueInfo) -> ValueInfo:
    """The last dimension of indices addresses the leading dimensions of params."""
    check_policy(attrs)
    for x, name in ((params, "params"), (indices, "indices")):
        if x.rank == 0:
            raise InvalidArgument(f"{name} must be at least a vector")
    if params.shape is None or indices.shape is None or indices.shape[-1] is None:
        return info(params.dtype, None)
    depth = indices.shape[-1]
    if depth > len(params.shape):
        raise InvalidArgument(f"index innermost dimension length must be <= params rank; saw: {depth} vs. "
                              f"{len(params.shape)}")
    if elements_in(params.shape) == 0 and (elements_in(indices.shape[:-1]) or 0) > 0:
        raise InvalidArgument(f"Requested more than 0 entries, but params is empty: {shape_text(params.shape)}")
    return info(params.dtype, (*indices.shape[:-1], *params.shape[depth:]))


@rule("ScatterNd", values=("shape",))
def scatter_nd(attrs: Attrs, indices: ValueInfo, updates: ValueInfo, shape: ValueInfo) -> ValueInfo:
    check_policy(attrs)
    target = shape_in(shape, "shape")
    check_updates(indices.shape, updates.shape, target)
    return info(updates.dtype, target)


@rule(
    "ScatterNdNonAliasingAdd", "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub",
    "TensorScatterUpdate",
)
def tensor_scatter(attrs: Attrs, x: ValueInfo, indices: ValueInfo, updates: ValueInfo) -> ValueInfo:
    check_policy(attrs)
    check_updates(indices.shape, updates.shape, x.shape)
    return ValueInfo(x.meta)


def check_policy(attrs: Attrs) -> None:
    if attrs["bad_indices_policy"] not in POLICIES:
        raise InvalidArgument(f"bad_indices_policy '{attrs['bad_indices_policy']}' is none of {list(POLICIES)}")


def check_updates(indices: Shape, updates: Shape, target: Shape) -> None:
    """Check updates: the shape of indices without its last dimension, then the dimensions of target left unindexed.

    A single index is refused, as in TensorFlow: its kernels read a vector of indices in two contradictory ways.
    """
    if indices is not None and len(indices) < 2:
        raise InvalidArgument(f"indices must have at least rank 2, given shape {shape_text(indices)}")
    sizes = [elements_in(shape) for shape in (target, indices, updates)]
    if 0 in sizes and None not in sizes and sizes[1:] != [0, 0]:
        raise InvalidArgument("Indices and updates specified for empty output shape")
    if indices is None or updates is None:
        return
    *outer, depth = indices
    if len(updates) < len(outer):
        raise InvalidArgument(f"updates {shape_text(updates)} must have the outer dimensions of indices "
                              f"{shape_text(indices)}")
    same_shape((tuple(outer), updates[: len(outer)]), "Dimensions of indices and updates must match")
    if depth is None or target is None:
        return
    if depth > len(target):
        raise InvalidArgument(f"the last dimension of indices, {depth}, must be no greater than the output's rank, "
                              f"{len(target)}")
    same_shape((updates[len(outer) :], target[depth:]), "Dimensions of updates and output must match")


@rule("InplaceAdd", "InplaceSub", "InplaceUpdate")
def inplace(_: Attrs, x: ValueInfo, rows: ValueInfo, updates: ValueInfo) -> ValueInfo:
    """`updates` has one row for each row that `rows` names."""
    if x.rank == 0:
        raise InvalidArgument("x must be at least a vector, given shape []")
    (count,) = dims_of_rank(rows, 1, "i")
    if x.shape is not None:
        same_shape(((count, *x.shape[1:]), updates.shape), "v must have the shape of the rows that i names")
    return ValueInfo(x.meta)


@rule("DynamicPartition")
def dynamic_partition(attrs: Attrs, x: ValueInfo, partitions: ValueInfo) -> tuple[ValueInfo, ...]:
    row_shape: Shape = None
    if x.shape is not None and partitions.shape is not None:
        row_shape = _without_prefix(x.shape, partitions.shape, "data", "partitions")
    count: int = attrs["num_partitions"]
    return (info(x.dtype, None if row_shape is None else (None, *row_shape)),) * count


@rule("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(attrs: Attrs, *indices_then_data: ValueInfo) -> ValueInfo:
    count: int = attrs["N"]
    rests = [_without_prefix(x.shape, i.shape, f"data[{n}]", f"indices[{n}]")
             for n, (i, x) in enumerate(zip(indices_then_data[:count], indices_then_data[count:], strict=True))
             if i.shape is not None and x.shape is not None]
    row_shape = same_shape(rests, "data must agree beyond the dimensions of indices")
    return info(indices_then_data[-1].dtype, None if row_shape is None else (None, *row_shape))


def _without_prefix(shape: tuple[int | None, ...], prefix: tuple[int | None, ...], name: str, first: str) -> Shape:
    what = f"{name}.shape must start with {first}.shape"
    if len(shape) < len(prefix):
        raise InvalidArgument(f"{what}, given {shape_text(shape)} and {shape_text(prefix)}")
    for a, b in zip(shape, prefix, strict=False):
        same_dim(a, b, f"{what}: the lengths")
    return shape[len(prefix) :]
