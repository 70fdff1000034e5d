"""Counts of values in the rows of tensors: dense, sparse and ragged inputs agree; empty rows that are filled."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
rows_of_values = st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=4)
NO_WEIGHTS = np.int64([])


def ragged(rows):
    return np.cumsum([0, *map(len, rows)]), np.array([v for row in rows for v in row], np.int64)


def sparse(rows):
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    shape = np.int64([len(rows), max(map(len, rows))])
    return np.array(indices, np.int64).reshape(-1, 2), ragged(rows)[1], shape


def counts(rows, **attrs):
    return outputs("RaggedCountSparseOutput", *ragged(rows), NO_WEIGHTS, binary_output=False, **attrs)


@fast
@given(rows_of_values, st.integers(-1, 7), st.integers(-1, 7))
def test_ragged_and_sparse_rows_have_the_same_counts(rows, least, limit):
    attrs = {"minlength": least, "maxlength": limit}
    indices, totals, shape = counts(rows, **attrs)
    from_sparse = outputs("SparseCountSparseOutput", *sparse(rows), NO_WEIGHTS, binary_output=False, **attrs)
    for x, y in zip((indices, totals, shape), from_sparse, strict=True):
        np.testing.assert_array_equal(x, y)
    width = limit if limit >= 0 else max([least, 1, *(v + 1 for row in rows for v in row)])
    assert shape.tolist() == [len(rows), width]
    expected = {(i, v): row.count(v) for i, row in enumerate(rows) for v in set(row) if v < width}
    assert list(zip(map(tuple, indices.tolist()), totals, strict=True)) == sorted(expected.items())


@fast
@given(rows_of_values, st.integers(0, 7))
def test_dense_counts_of_sparse_rows_are_those_of_ragged_rows(rows, size):
    totals = outputs("SparseBincount", *sparse(rows), np.int64(size), np.float32([]), binary_output=False)[0]
    same = outputs("RaggedBincount", *ragged(rows), np.int64(size), np.float32([]), binary_output=False)[0]
    np.testing.assert_array_equal(totals, same)


@pytest.mark.parametrize("values", [[-1, 0], [0, -(2**31)]])
@pytest.mark.parametrize("op", ["SparseBincount", "SparseCountSparseOutput"])
def test_negative_values_are_refused(op, values):
    """TensorFlow's SparseBincount writes outside its result."""
    inputs = [np.int64([[0, 0], [0, 1]]), np.int32(values), np.int64([1, 2])]
    inputs += [np.int32(3), np.float32([])] if op == "SparseBincount" else [np.float32([])]
    with pytest.raises(InvalidArgument, match="non-negative"):
        outputs(op, *inputs, binary_output=False)


def test_weights_that_are_not_as_many_as_values_are_refused():
    with pytest.raises(InvalidArgument, match="weights"):
        outputs("SparseBincount", np.int64([[0], [1]]), np.int32([1, 1]), np.int64([2]), np.int32(3), np.float32([1]),
                binary_output=False)


@fast
@given(st.lists(st.integers(0, 3), max_size=6))
def test_each_empty_row_gets_the_default_value(rows):
    values = np.arange(1, len(rows) + 1)
    inputs = np.int64(rows), values, np.int64(4), np.int64(0)
    out_rows, filled, is_empty, places = outputs("RaggedFillEmptyRows", *inputs)
    assert is_empty.tolist() == [row not in rows for row in range(4)]
    assert sorted(out_rows.tolist()) == out_rows.tolist()
    np.testing.assert_array_equal(filled[places], values)
    np.testing.assert_array_equal(out_rows[filled == 0], np.flatnonzero(is_empty))
    gradients = outputs("RaggedFillEmptyRowsGrad", places, filled)
    np.testing.assert_array_equal(gradients[0], values)
    assert gradients[1] == 0


def test_no_rows_have_no_values():
    assert [len(x) for x in outputs("RaggedFillEmptyRows", NO_WEIGHTS, NO_WEIGHTS, np.int64(0), np.int64(0))] == [0] * 4


@pytest.mark.parametrize("op", ["DenseCountSparseOutput", "RaggedCountSparseOutput", "SparseCountSparseOutput"])
def test_a_value_without_a_successor_in_int64_is_refused(op):
    value = np.int64([np.iinfo(np.int64).max])
    inputs = {"D": [value], "R": [np.int64([0, 1]), value], "S": [np.int64([[0, 0]]), value, np.int64([1, 1])]}[op[0]]
    with pytest.raises(InvalidArgument, match="values must be at most 9223372036854775806"):
        outputs(op, *inputs, NO_WEIGHTS, binary_output=False)


@pytest.mark.parametrize("shape", [[-1, 2], [-1]])
def test_bins_of_a_shape_with_a_negative_length_are_refused(shape):
    indices = np.zeros((0, len(shape)), np.int64)
    with pytest.raises(InvalidArgument, match="has a negative length"):
        outputs("SparseBincount", indices, np.int32([]), np.int64(shape), np.int32(3), np.float32([]),
                binary_output=False)
