"""Cumulative sums, products and logarithms of sums of exponentials."""

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
matrices = hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
                      elements=st.floats(-9, 9, allow_subnormal=False))


@fast
@given(matrices, st.booleans(), st.data())
def test_an_exclusive_scan_lacks_the_element_itself(x, reverse, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    inclusive = call("Cumsum", x, np.int32(axis), reverse=reverse)
    exclusive = call("Cumsum", x, np.int32(axis), reverse=reverse, exclusive=True)
    np.testing.assert_allclose(inclusive - x, exclusive, atol=1e-9)
    np.testing.assert_allclose(inclusive, np.flip(np.cumsum(np.flip(x, axis), axis), axis) if reverse
                               else np.cumsum(x, axis), atol=1e-9)


@fast
@given(matrices, st.booleans(), st.booleans())
def test_cumulative_logsumexp_is_the_logarithm_of_a_cumulative_sum(x, reverse, exclusive):
    along = {"reverse": reverse, "exclusive": exclusive}
    with np.errstate(divide="ignore"):
        want = np.log(call("Cumsum", np.exp(x), np.int32(0), **along))
    np.testing.assert_allclose(call("CumulativeLogsumexp", x, np.int32(0), **along), want, atol=1e-9)


def test_scans_wrap_around_and_round_each_result():
    same(call("Cumsum", np.uint8([200, 100]), np.int32(0)), np.uint8([200, 44]))
    same(call("Cumsum", np.float16([2048, 1, 1]), np.int32(0)), np.float16([2048, 2048, 2048]))


def test_infinities_and_nan_stay_what_they_are():
    x = np.float32([-INF, 1, INF, 2])
    same(call("CumulativeLogsumexp", x, np.int32(0)), np.float32([-INF, 1, INF, INF]))
    assert np.isnan(call("CumulativeLogsumexp", np.float32([1, NAN, 1]), np.int32(0))).tolist() == [False, True, True]


def test_an_axis_that_does_not_exist_is_refused():
    for shape, axis in (((3,), 1), ((2, 3), -3), ((), 0)):
        with pytest.raises(InvalidArgument, match="scan axis"):
            call("Cumprod", np.ones(shape), np.int32(axis))
    with pytest.raises(InvalidArgument, match="scalar"):
        call("Cumprod", np.ones(3), np.int32([0]))
    assert RULES["Cumsum"].function({}, info(dtypes.float32, None), constant_info(np.int32(7))).shape is None
