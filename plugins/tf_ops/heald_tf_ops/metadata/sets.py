"""Metadata of ops that treat tensors as sets: distinct elements or slices, differences, unions."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import axis_in, dims_of_rank, same_shape, vector

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
    if attrs["set_operation"].lower() not in OPERATIONS:
        raise InvalidArgument(f"set_operation must be one of {', '.join(OPERATIONS)}, given {attrs['set_operation']}")
    groups = same_shape((_groups(set1), _groups(set2)), "set1 and set2 must have the same first dimensions")
    rank = None if groups is None else len(groups) + 1
    return info(dtypes.int64, (None, rank)), info(set1.dtype, (None,)), info(dtypes.int64, (rank,))


def _groups(x: ValueInfo) -> Shape:
    if x.rank is not None and x.rank < 2:
        raise InvalidArgument(f"a tensor of sets has at least rank 2, given {shape_text(x.shape)}")
    return None if x.shape is None else x.shape[:-1]
