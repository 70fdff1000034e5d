"""Reductions of segments: rows that have the same id."""

import numpy as np
import pytest
from harness.call_op import call, same
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info, info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

INF = np.inf
fast = settings(max_examples=60)
ids = st.lists(st.integers(0, 5), max_size=8)


def rows(count):
    return np.arange(count * 2, dtype=np.float64).reshape(count, 2) - 3


@fast
@given(ids)
def test_sorted_segments_are_unsorted_ones_of_sorted_ids(given_ids):
    segment_ids = np.array(sorted(given_ids), np.int64)
    x, count = rows(len(given_ids)), np.int32(max(given_ids, default=-1) + 1)
    for op in ("Sum", "Prod"):
        same(call(f"Segment{op}", x, segment_ids), call(f"UnsortedSegment{op}", x, segment_ids, count))


@pytest.mark.parametrize("width", [1, 3, 400])
def test_runs_of_any_length_and_width_are_reduced(width):
    """Few elements, many short runs, and few long ones are reduced in ways of their own."""
    for lengths in ([1, 5, 2], [2] * 40, [90, 1]):
        segment_ids = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        x = np.arange(len(segment_ids) * width, dtype=np.int64).reshape(-1, width) % 11
        ones = np.arange(len(lengths))[:, None] == segment_ids
        same(call("SegmentSum", x, segment_ids), ones.astype(np.int64) @ x)
        same(call("SegmentMax", x, segment_ids), np.stack([x[row].max(0) for row in ones]))


@fast
@given(ids)
def test_unsorted_sums_are_products_with_a_matrix_of_ones(given_ids):
    x = rows(len(given_ids))
    ones = np.arange(6)[:, None] == np.array(given_ids, int)
    same(call("UnsortedSegmentSum", x, np.array(given_ids, np.int32), np.int32(6)), ones @ x)


@fast
@given(ids)
def test_sparse_segments_are_segments_of_what_is_picked(picks):
    x, picks = rows(6), np.array(picks, np.int32)
    segment_ids = np.arange(len(picks), dtype=np.int32) // 3
    total = call("SegmentSum", x[picks], segment_ids)
    counts = np.bincount(segment_ids)[:, None]
    same(call("SparseSegmentSum", x, picks, segment_ids), total)
    same(call("SparseSegmentMean", x, picks, segment_ids), total / counts)
    same(call("SparseSegmentSqrtN", x, picks, segment_ids), total / np.sqrt(counts))
    more = call("SparseSegmentSumWithNumSegments", x, picks, segment_ids, np.int32(9))
    same(more, np.concatenate([total, np.zeros((9 - len(total), 2))]))


def test_segments_of_no_rows_have_what_each_op_starts_with():
    x, gap = np.float32([3, 4]), np.int32([0, 2])
    for op, empty in (("Sum", 0), ("Mean", 0), ("Prod", 1), ("Min", 0), ("Max", 0)):
        same(call(f"Segment{op}", x, gap), np.float32([3, empty, 4]))
    limits = np.finfo(np.float32)
    for op, empty in (("Sum", 0), ("Prod", 1), ("Min", limits.max), ("Max", limits.min)):
        same(call(f"UnsortedSegment{op}", x, gap, np.int32(3)), np.float32([3, empty, 4]))
    same(call("UnsortedSegmentMax", np.float32([-INF]), np.int32([0]), np.int32(1)), np.float32([limits.min]))


def test_negative_ids_count_nowhere_where_ids_need_no_order():
    same(call("UnsortedSegmentSum", np.int32([1, 2, 3, 4]), np.int32([-1, 1, -7, 1]), np.int32(2)), np.int32([0, 6]))


def test_integer_means_round_toward_zero_and_sums_wrap_around():
    same(call("SegmentMean", np.int32([-7, 0]), np.int32([0, 0])), np.int32([-3]))
    same(call("SegmentSum", np.int8([100, 100]), np.int32([0, 0])), np.int8([-56]))


def test_a_count_that_wraps_around_to_zero_divides_nothing():
    with pytest.raises(InvalidArgument, match="256 rows"):
        call("SegmentMean", np.ones(256, np.uint8), np.zeros(256, np.int32))


def test_wide_rows_are_reduced_like_narrow_ones():
    for lengths in ([3, 1, 2], [1, 9], [2] * 9):
        segment_ids = np.repeat(np.arange(len(lengths)), lengths)
        x = np.arange(len(segment_ids) * 3).reshape(-1, 3) % 7
        for op in ("Sum", "Prod", "Max", "Min"):
            columns = [call(f"Segment{op}", column, segment_ids) for column in x.T]
            same(call(f"Segment{op}", x, segment_ids), np.stack(columns, 1))


@pytest.mark.parametrize(("op", "inputs", "reason"), [
    ("SegmentSum", ([1.0, 2.0], [1, 0]), "not increasing"), ("SegmentSum", ([1.0], [-1]), ">= 0"),
    ("SegmentSum", ([1.0, 2.0], [0]), "must be equal"), ("SegmentSum", (1.0, [0]), "rank 1"),
    ("UnsortedSegmentSum", ([1.0], [3], 3), "out of range"), ("UnsortedSegmentSum", ([1.0], [0], -1), "non-negative"),
    ("UnsortedSegmentSum", ([1.0], [[0]], 1), "must start with"),
    ("SparseSegmentSum", ([1.0], [1], [0]), "out of range"), ("SparseSegmentSum", ([1.0], [0], [0, 0]), "same length"),
    ("SparseSegmentMeanWithNumSegments", ([1.0], [0], [2], 2), "out of range"),
])
def test_ids_that_do_not_fit_are_refused(op, inputs, reason):
    data, *numbers = inputs
    with pytest.raises(InvalidArgument, match=reason):
        call(op, np.float32(data), *(np.int32(x) for x in numbers))


def test_the_number_of_segments_is_known_where_it_is_given():
    data, segment_ids = info(dtypes.float32, (4, None, 3)), info(dtypes.int32, (4, None))
    unsorted = RULES["UnsortedSegmentSum"].function
    assert unsorted({}, data, segment_ids, constant_info(np.int32(7))).shape == (7, 3)
    assert unsorted({}, data, info(dtypes.int32, None), constant_info(np.int32(7))).shape is None
    assert RULES["SegmentSum"].function({}, data, info(dtypes.int32, (4,))).shape == (None, None, 3)
