"""Searches: the indices of nonzero elements, and the positions of values in sorted rows."""

import numpy as np
import pytest
from harness.call_op import call, same
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

NAN = np.nan
fast = settings(max_examples=60)
row = st.lists(st.integers(-3, 3), max_size=9)


@fast
@given(hnp.arrays(bool, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=3)))
def test_the_op_where_names_the_true_elements_in_order(x):
    indices = call("Where", x)
    assert indices.dtype == np.int64
    assert indices.shape == (np.count_nonzero(x), x.ndim)
    same(np.array([x[tuple(index)] for index in indices], bool), np.ones(len(indices), bool))


def test_nan_is_not_zero_and_negative_zero_is():
    same(call("Where", np.float32([0, NAN, -0.0, 2])), np.array([[1], [3]]))
    with pytest.raises(InvalidArgument, match="at least 1 dimension"):
        call("Where", np.array(True))


@fast
@given(row, row)
def test_bounds_are_numpys_insertion_points(elements, values):
    rows = np.float32([sorted(elements)] * 2)
    values = np.float32([values, values[::-1]])
    for op, side in (("LowerBound", "left"), ("UpperBound", "right")):
        want = np.array([np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)]).astype(np.int64)
        same(call(op, rows, values, out_type=dtypes.int64), want)


def test_integers_are_compared_with_boundaries_in_float32():
    same(call("Bucketize", np.int64([2**24, 2**24 + 1]), boundaries=[2.0**24 + 2]), np.int32([0, 0]))
    same(call("Bucketize", np.float64([2**24 + 1, 2**24 + 2, NAN]), boundaries=[2.0**24 + 2]), np.int32([0, 1, 1]))
    with pytest.raises(InvalidArgument, match="sorted"):
        call("Bucketize", np.float32([1]), boundaries=[2.0, 1.0])


@fast
@given(st.permutations(range(6)))
def test_an_inverse_permutation_undoes_its_permutation(order):
    x = np.array(order, np.int64)
    same(x[call("InvertPermutation", x)], np.arange(6))


@pytest.mark.parametrize("x", [[0, 2], [-1, 0], [1, 1], [0, 0, 2]])
def test_indices_that_are_no_permutation_are_refused(x):
    with pytest.raises(InvalidArgument, match="permutation"):
        call("InvertPermutation", np.int32(x))
