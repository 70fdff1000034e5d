"""Metadata of ops that reorder a tensor's elements along dimensions, or rename dimensions."""

from __future__ import annotations

from collections import Counter

from heald.api import Attrs, InvalidArgument, ValueInfo, shape_text

from .rules import rule
from .shapes import axis_in, dims_of_rank, same_dim, same_shape, vector


@rule("ReverseV2", values=("axis",))
def reverse(_: Attrs, x: ValueInfo, axis: ValueInfo) -> ValueInfo:
    """A scalar is its own reverse, along any axis: TensorFlow's kernel returns it before it looks at the axes."""
    axes = vector(axis, "axis")
    if x.shape and axes is not None:
        axis_counts = Counter(axis_in(a, len(x.shape), "axis") for a in axes if a is not None)
        for at, count in axis_counts.items():
            if count > 1:
                raise InvalidArgument(f"axis {at} specified more than once")
    return ValueInfo(x.meta)


@rule("Reverse", values=("dims",))
def reverse_flagged(_: Attrs, x: ValueInfo, dims: ValueInfo) -> ValueInfo:
    same_dim(x.rank, dims_of_rank(dims, 1, "dims")[0], "the rank of tensor and the length of dims")
    return ValueInfo(x.meta)


@rule("ReverseSequence")
def reverse_sequence(attrs: Attrs, x: ValueInfo, lengths: ValueInfo) -> ValueInfo:
    seq, batch = attrs["seq_dim"], attrs["batch_dim"]
    (count,) = dims_of_rank(lengths, 1, "seq_lengths")
    if seq == batch:
        raise InvalidArgument(f"batch_dim == seq_dim == {seq}")
    if x.shape is not None:
        for name, axis in (("seq_dim", seq), ("batch_dim", batch)):
            if not 0 <= axis < len(x.shape):
                raise InvalidArgument(f"{name} must be in [0, {len(x.shape)}), the rank of input, given {axis}")
        same_dim(x.shape[batch], count, f"dimension {batch} of input and the length of seq_lengths")
    return ValueInfo(x.meta)


@rule("Roll", values=("shift", "axis"))
def roll(_: Attrs, x: ValueInfo, shift: ValueInfo, axis: ValueInfo) -> ValueInfo:
    if x.rank == 0:
        raise InvalidArgument("input must be 1-D or higher")
    for input_info, name in ((shift, "shift"), (axis, "axis")):
        if input_info.rank is not None and input_info.rank > 1:
            raise InvalidArgument(f"{name} must be a scalar or a 1-D vector, found {shape_text(input_info.shape)}")
    same_shape((shift.shape, axis.shape), "shift and axis must have the same size")
    if x.shape is not None:
        axes = axis.distinct()
        for at in () if axes is None or not axes.size else (axes.min(), axes.max()):
            axis_in(int(at), len(x.shape), "axis")
    return ValueInfo(x.meta)


@rule("DataFormatDimMap")
def data_format_dim_map(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    _check_formats(attrs)
    return ValueInfo(x.meta)


@rule("DataFormatVecPermute")
def data_format_vec_permute(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    """The input is a vector, or a matrix of two columns, with a row for each dimension or each spatial dimension."""
    _check_formats(attrs)
    if x.shape is None:
        return ValueInfo(x.meta)
    if len(x.shape) not in (1, 2):
        raise InvalidArgument(f"input must be a vector or 2D tensor, but got shape {shape_text(x.shape)}")
    full = len(attrs["src_format"])
    if x.shape[0] not in (None, full, full - 2):
        raise InvalidArgument(f"the first dimension of input must be of size {full - 2} or {full}, but got shape "
                              f"{shape_text(x.shape)}")
    if len(x.shape) == 2:
        same_dim(x.shape[1], 2, "the second dimension of a 2D input and 2")
    return ValueInfo(x.meta)


def _check_formats(attrs: Attrs) -> None:
    source, target = attrs["src_format"], attrs["dst_format"]
    if len(source) not in (4, 5):
        raise InvalidArgument(f"Source format must be of length 4 or 5, received '{source}'")
    if sorted(source) != sorted(target) or len(set(source)) < len(source):
        raise InvalidArgument(f"Destination and source format must determine a permutation, got '{source}' and "
                              f"'{target}'")
