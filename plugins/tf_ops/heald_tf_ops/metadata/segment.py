"""Metadata of ops that reduce segments: the rows of a tensor that have the same id."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, info, shape_text

from .rules import rule
from .shapes import count_in, dims_of_rank, same_dim, same_shape

SPARSE = ("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum")


@rule("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum")
def segment(_: Attrs, data: ValueInfo, segment_ids: ValueInfo) -> ValueInfo:
    (count,) = dims_of_rank(segment_ids, 1, "segment_ids")
    row = _row(data)
    if data.shape is not None:
        same_dim(data.shape[0], count, "dimension 0 of data and the length of segment_ids")
    return info(data.dtype, _rows(None, row))


@rule("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", values=("num_segments",))
def unsorted_segment(_: Attrs, data: ValueInfo, segment_ids: ValueInfo, num_segments: ValueInfo) -> ValueInfo:
    count = count_in(num_segments, "num_segments")
    if data.shape is None or segment_ids.shape is None:
        return info(data.dtype, None)
    lead = data.shape[: len(segment_ids.shape)]
    same_shape((lead, segment_ids.shape), f"data {shape_text(data.shape)} must start with the shape of segment_ids")
    return info(data.dtype, (count, *data.shape[len(lead) :]))


@rule(*SPARSE)
def sparse_segment(_: Attrs, data: ValueInfo, indices: ValueInfo, segment_ids: ValueInfo) -> ValueInfo:
    _check_picks(indices, segment_ids)
    return info(data.dtype, _rows(None, _row(data)))


@rule(*(f"{op}WithNumSegments" for op in SPARSE), values=("num_segments",))
def sparse_segment_with_count(
    attrs: Attrs, data: ValueInfo, indices: ValueInfo, segment_ids: ValueInfo, num_segments: ValueInfo
) -> ValueInfo:
    sparse_segment(attrs, data, indices, segment_ids)
    return info(data.dtype, _rows(count_in(num_segments, "num_segments"), _row(data)))


@rule(*(f"{op}Grad" for op in SPARSE), values=("output_dim0",))
def sparse_segment_gradient(
    _: Attrs, gradients: ValueInfo, indices: ValueInfo, segment_ids: ValueInfo, size: ValueInfo
) -> ValueInfo:
    _check_picks(indices, segment_ids)
    return info(gradients.dtype, _rows(count_in(size, "output_dim0"), _row(gradients)))


@rule(*(f"{op}GradV2" for op in SPARSE))
def compact_sparse_segment_gradient(
    _: Attrs, gradients: ValueInfo, indices: ValueInfo, segment_ids: ValueInfo, size: ValueInfo
) -> tuple[ValueInfo, ValueInfo]:
    """Return the gradients of picked rows alone, and the indices of these rows."""
    _check_picks(indices, segment_ids)
    count_in(size, "dense_output_dim0")
    return info(gradients.dtype, _rows(None, _row(gradients))), info(indices.dtype, (None,))


def _check_picks(indices: ValueInfo, segment_ids: ValueInfo) -> None:
    same_shape((dims_of_rank(indices, 1, "indices"), dims_of_rank(segment_ids, 1, "segment_ids")),
               "indices and segment_ids must have the same length")


def _row(data: ValueInfo) -> Shape:
    if data.rank == 0:
        raise InvalidArgument("data must be at least rank 1, given a scalar")
    return None if data.shape is None else data.shape[1:]


def _rows(count: int | None, row: Shape) -> Shape:
    return None if row is None else (count, *row)
