"""Metadata of ops that treat tensors as sets: distinct elements or slices, differences, unions."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import axis_in, dims_of_rank, same_dim, same_shape, vector
from .sparse import sparse

OPERATIONS = ("a-b", "b-a", "intersection", "union")


@rule("Unique")
def unique(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    return info(x.dtype, (None,)), info(attrs["out_idx"], dims_of_rank(x, 1, "x"))


@rule("UniqueWithCounts")
def unique_with_counts(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    return (*unique(attrs, x), info(attrs["out_idx"], (None,)))


@rule("UniqueV2", values=("axis",))
def unique_v2(attrs: Attrs, x: ValueInfo, axis: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    """Slices are distinct along `axis`, a vector of one element. An empty `axis` requires a vector x."""
    at = vector(axis, "axis")
    if at is not None and len(at) > 1:
        raise InvalidArgument(f"axis must have 0 or 1 elements, given shape {shape_text(axis.shape)}")
    if at == ():
        return unique(attrs, x)
    if at is None or at[0] is None or x.shape is None:
        return info(x.dtype, None if x.shape is None else (None,) * len(x.shape)), info(attrs["out_idx"], (None,))
    axis_index = axis_in(at[0], len(x.shape), "axis")
    distinct = (*x.shape[:axis_index], None, *x.shape[axis_index + 1 :])
    return info(x.dtype, distinct), info(attrs["out_idx"], (x.shape[axis_index],))


@rule("UniqueWithCountsV2", values=("axis",))
def unique_with_counts_v2(attrs: Attrs, x: ValueInfo, axis: ValueInfo) -> tuple[ValueInfo, ...]:
    return (*unique_v2(attrs, x, axis), info(attrs["out_idx"], (None,)))


@rule("ListDiff")
def list_diff(attrs: Attrs, x: ValueInfo, y: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    dims_of_rank(x, 1, "x")
    dims_of_rank(y, 1, "y")
    return info(x.dtype, (None,)), info(attrs["out_idx"], (None,))


@rule("DenseToDenseSetOperation")
def dense_to_dense(attrs: Attrs, set1: ValueInfo, set2: ValueInfo) -> tuple[ValueInfo, ValueInfo, ValueInfo]:
    """Each row is a set; the result is a sparse tensor of the rows' results."""
    _check_operation(attrs)
    groups = same_shape((_groups(set1), _groups(set2)), "set1 and set2 must have the same first dimensions")
    return _results(set1, None if groups is None else len(groups) + 1)


def _check_operation(attrs: Attrs) -> None:
    if attrs["set_operation"].lower() not in OPERATIONS:
        raise InvalidArgument(f"set_operation must be one of {', '.join(OPERATIONS)}, given {attrs['set_operation']}")


def _results(values: ValueInfo, rank: int | None) -> tuple[ValueInfo, ValueInfo, ValueInfo]:
    return info(dtypes.int64, (None, rank)), info(values.dtype, (None,)), info(dtypes.int64, (rank,))


@rule("DenseToSparseSetOperation")
def dense_to_sparse(
    attrs: Attrs, dense: ValueInfo, indices: ValueInfo, values: ValueInfo, shape: ValueInfo
) -> tuple[ValueInfo, ValueInfo, ValueInfo]:
    _check_operation(attrs)
    groups = _groups(dense)
    dense_rank = None if groups is None else len(groups) + 1
    return _results(values, same_dim(dense_rank, _rank_of_sets(indices, values, shape), "the ranks of both sets"))


@rule("SparseToSparseSetOperation")
def sparse_to_sparse(attrs: Attrs, *sets: ValueInfo) -> tuple[ValueInfo, ValueInfo, ValueInfo]:
    _check_operation(attrs)
    return _results(sets[1], same_dim(_rank_of_sets(*sets[:3]), _rank_of_sets(*sets[3:]), "the ranks of both sets"))


@rule("SetSize")
def set_size(_: Attrs, indices: ValueInfo, values: ValueInfo, shape: ValueInfo) -> ValueInfo:
    _rank_of_sets(indices, values, shape)
    return info(dtypes.int32, None)


def _rank_of_sets(indices: ValueInfo, values: ValueInfo, shape: ValueInfo) -> int | None:
    _, rank = sparse(indices, values, shape)
    if rank is not None and rank < 2:
        raise InvalidArgument(f"a tensor of sets has at least rank 2, given rank {rank}")
    return rank


def _groups(x: ValueInfo) -> Shape:
    if x.rank is not None and x.rank < 2:
        raise InvalidArgument(f"a tensor of sets has at least rank 2, given {shape_text(x.shape)}")
    return None if x.shape is None else x.shape[:-1]
