"""Counts of elements by their value."""

import numpy as np
import pytest
from harness.call_op import call, same
from heald.errors import InvalidArgument
from hypothesis import given, settings
from hypothesis import strategies as st

NONE = np.float32([])
fast = settings(max_examples=60)


@fast
@given(st.lists(st.integers(0, 6), max_size=9), st.integers(0, 8))
def test_rows_are_counted_as_they_would_be_alone(elements, size):
    x, size = np.int32(elements), np.int32(size)
    weights = np.arange(len(x)) + 1.0
    for weight in (NONE, weights):
        one = call("DenseBincount", x, size, weight)
        same(call("Bincount", x, size, weight), one)
        same(one, np.bincount(x, weights if weight.size else None, int(size))[:size].astype(weight.dtype))
        two = np.stack([weight, weight]) if weight.size else weight
        same(call("DenseBincount", np.stack([x, x[::-1]]), size, two)[0], one)


def test_a_binary_count_tells_only_what_is_there():
    x, weights = np.int64([[1, 1], [0, 9]]), np.float32([[5, 5], [5, 5]])
    same(call("DenseBincount", x, np.int64(2), weights, binary_output=True), np.float32([[0, 1], [1, 0]]))


@pytest.mark.parametrize(("x", "size", "weights", "reason"), [
    ([-1], 3, [], "non-negative"), ([1], -1, [], "non-negative"), ([1], 3, [1.0, 2.0], "shape of the input"),
    ([[[1]]], 3, [], "rank 2"),
])
def test_an_input_that_cannot_be_counted_is_refused(x, size, weights, reason):
    with pytest.raises(InvalidArgument, match=reason):
        call("DenseBincount", np.int32(x), np.int32(size), np.float32(weights))


def test_weights_of_a_flat_count_may_have_another_shape():
    same(call("Bincount", np.int32([[0, 1], [1, 1]]), np.int32(2), np.float32([1, 2, 3, 4])), np.float32([1, 9]))
    with pytest.raises(InvalidArgument, match="numbers of elements"):
        call("Bincount", np.int32([0, 1]), np.int32(2), np.float32([1]))


def test_large_weights_of_integers_are_exact():
    same(call("Bincount", np.int32([0, 0]), np.int32(1), np.int64([2**53, 1])), np.int64([2**53 + 1]))


def test_values_outside_a_histogram_are_in_its_first_and_last_bin():
    values = np.float32([-9, 0, 0.5, 1, 2, 99])
    same(call("HistogramFixedWidth", values, np.float32([0, 2]), np.int32(4)), np.int32([2, 1, 1, 2]))
    for limits, bins in (([2, 2], 3), ([0, 1], 0)):
        with pytest.raises(InvalidArgument):
            call("HistogramFixedWidth", values, np.float32(limits), np.int32(bins))


def test_nan_is_only_in_a_histogram_of_one_bin():
    values, limits = np.float32([np.nan, 1]), np.float32([0, 2])
    same(call("HistogramFixedWidth", values, limits, np.int32(1)), np.int32([2]))
    with pytest.raises(InvalidArgument, match="NaN"):
        call("HistogramFixedWidth", values, limits, np.int32(2))


def test_bins_are_computed_in_float64():
    values = np.linspace(-3, 3, 61).astype(np.float32)
    got = call("HistogramFixedWidth", values, np.float32([-3, 3]), np.int32(10))
    same(got, np.int32([7, 5, 7, 6, 5, 6, 6, 7, 5, 7]))  # as TensorFlow 2.21 counts them


@fast
@given(st.lists(st.lists(st.integers(0, 6), max_size=4), max_size=4), st.integers(0, 8), st.booleans(), st.booleans())
def test_ragged_rows_are_counted_as_dense_rows_are(rows, size, weighted, binary):
    splits = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    values = np.int32([e for row in rows for e in row])
    weights = np.arange(len(values), dtype=np.float32) + 1 if weighted else NONE
    got = call("RaggedBincount", splits, values, np.int32(size), weights, binary_output=binary)
    assert got.shape == (len(rows), size)
    for row, start, end in zip(got, splits, splits[1:], strict=False):
        same(row, call("DenseBincount", values[start:end], np.int32(size), weights[start:end], binary_output=binary))


@pytest.mark.parametrize(("splits", "values", "size", "weights", "reason"), [
    ([0, 2], [1, -1], 3, [], "non-negative"), ([0, 1], [1, 1], 3, [], "splits"), ([1, 2], [1, 1], 3, [], "splits"),
    ([], [], 3, [], "non-empty"), ([0, 2], [1, 1], -1, [], "non-negative"), ([0, 2], [1, 1], 3, [1.0], "weights"),
])
def test_ragged_rows_that_cannot_be_counted_are_refused(splits, values, size, weights, reason):
    with pytest.raises(InvalidArgument, match=reason):
        call("RaggedBincount", np.int64(splits), np.int32(values), np.int32(size), np.float32(weights))
