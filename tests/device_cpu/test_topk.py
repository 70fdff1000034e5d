"""The largest elements of rows, the n-th, and whether a class is among the first."""

import ml_dtypes
import numpy as np
import pytest
from harness.call_op import call, same
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info, info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

INF, NAN = np.inf, np.nan
fast = settings(max_examples=60)
matrices = hnp.arrays(np.int8, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6), elements=st.integers(-3, 3))


@fast
@given(matrices, st.data())
def test_the_largest_are_sorted_and_the_first_of_equal_ones_comes_first(x, data):
    k = data.draw(st.integers(0, x.shape[-1]))
    order = np.lexsort((np.broadcast_to(np.arange(x.shape[-1]), x.shape), -x), axis=-1)[..., :k]
    same(call("TopKV2", x, np.int32(k)), np.take_along_axis(x, order, -1), order.astype(np.int32))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.uint8])
def test_a_few_of_many_are_those_of_a_whole_sort(dtype):
    x = np.random.default_rng(0).integers(0, 50, (3, 2000)).astype(dtype)
    order = np.argsort(-x.astype(np.float64), -1, kind="stable")[:, :7]
    got = call("TopKV2", x, np.int16(7), index_type=dtypes.int16)
    same(got, np.take_along_axis(x, order, -1), order.astype(np.int16))


def test_nan_is_larger_than_any_number():
    for dtype in (np.float32, ml_dtypes.bfloat16):
        x = np.array([1, NAN, INF, 2] + [0] * 2000, dtype)
        for columns in (4, len(x)):
            values, places = call("TopKV2", x[:columns], np.int32(3))
            assert places.tolist() == [1, 2, 3]
            assert np.isnan(values[0].astype(float))


@fast
@given(matrices, st.booleans(), st.data())
def test_the_nth_element_is_that_of_the_sorted_row(x, reverse, data):
    n = data.draw(st.integers(0, x.shape[-1] - 1))
    same(call("NthElement", x, np.int32(n), reverse=reverse), np.sort(x, -1)[..., -1 - n if reverse else n])


def test_a_class_is_in_the_top_k_when_fewer_are_larger():
    x = np.float32([[1, 3, 3, 2]] * 4)
    same(call("InTopK", x, np.int32([0, 1, 2, 3]), k=2), np.array([False, True, True, False]))
    same(call("InTopKV2", x, np.int64([0, 4, -1, 3]), np.int64(3)), np.array([False, False, False, True]))


def test_no_class_is_in_the_top_k_of_a_row_that_is_not_finite():
    same(call("InTopK", np.float32([[1, NAN], [INF, 1]]), np.int32([0, 0]), k=9), np.array([False, False]))


@pytest.mark.parametrize(("op", "x", "n", "reason"), [
    ("TopKV2", [1.0], 2, "at least k columns"), ("TopKV2", [1.0], -1, "k >= 0"), ("TopKV2", 1.0, 1, ">= 1-D"),
    ("NthElement", [1.0], 1, "last dimension"), ("NthElement", [1.0], -1, "non-negative"),
])
def test_places_that_rows_do_not_have_are_refused(op, x, n, reason):
    with pytest.raises(InvalidArgument, match=reason):
        call(op, np.float32(x), np.int32(n))


def test_columns_that_the_index_type_cannot_count_are_refused():
    with pytest.raises(InvalidArgument, match="at most 32767 columns"):
        call("TopKV2", np.zeros(32768, np.int8), np.int32(1), index_type=dtypes.int16)


def test_only_the_rows_are_known_for_an_unknown_number():
    x, k = info(dtypes.float32, (None, 5)), info(dtypes.int32, ())
    top = RULES["TopKV2"].function
    assert [o.shape for o in top({"index_type": dtypes.int32}, x, k)] == [(None, None)] * 2
    assert top({"index_type": dtypes.int32}, x, constant_info(np.int32(2)))[0].shape == (None, 2)
