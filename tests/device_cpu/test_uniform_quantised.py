"""Uniform quantisation: there and back within half a step, limits, and parameters that fit no input."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

QINT8 = dtypes.named("qint8")
LIMITS = {"quantization_min_val": -128, "quantization_max_val": 127}


def quantize(x, scales, zero_points, **attrs):
    attrs = {"Tout": QINT8, **LIMITS, **attrs}
    return outputs("UniformQuantize", np.float32(x), np.float32(scales), np.int32(zero_points), **attrs)[0]


@settings(max_examples=60)
@given(st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=6), st.floats(0.25, 2, width=32),
       st.integers(-5, 5))
def test_numbers_come_back_within_half_a_step(numbers, scale, zero_point):
    x = quantize(numbers, scale, zero_point)
    again = outputs("UniformDequantize", x, np.float32(scale), np.int32(zero_point), Tout=dtypes.float32, **LIMITS)[0]
    np.testing.assert_allclose(again, numbers, atol=0.51 * scale)


def test_each_index_along_an_axis_has_its_own_scale():
    x = quantize([[1, 1], [2, 2]], [0.5, 0.25], [0, 10], quantization_axis=1)
    assert x.view("i1").tolist() == [[2, 14], [4, 18]]


def test_numbers_beyond_the_type_are_its_ends_but_infinities_the_lowest():
    assert quantize([1e6, -1e6, np.inf, np.nan], 1, 0).view("i1").tolist() == [127, -128, -128, -128]


@pytest.mark.parametrize(("scales", "zero_points", "axis"), [
    (1, [0], -1), ([1, 1], [0, 0], -1), ([1, 1, 1], [0, 0, 0], 1), ([1, 1], [0], 1), ([1, 1], [0, 0], 2),
    (1, 0, -2), (1, 0, 0),
])
def test_parameters_that_fit_no_input_are_refused(scales, zero_points, axis):
    with pytest.raises(InvalidArgument):
        quantize([[1, 1], [2, 2]], scales, zero_points, quantization_axis=axis)


def test_a_scale_of_zero_has_no_floats():
    with pytest.raises(InvalidArgument, match="positive"):
        outputs("UniformDequantize", np.int8([1]).view(QINT8.numpy), np.float32(0), np.int32(0), Tout=dtypes.float32,
                **LIMITS)


@pytest.mark.parametrize(("name", "value"), [("quantization_min_val", -(1 << 40)), ("quantization_max_val", 1 << 31)])
def test_bounds_beyond_int32_are_refused(name, value):
    with pytest.raises(InvalidArgument, match=f"'{name}' is {value}, which int32 does not have"):
        quantize([1], 1, 0, **{name: value})
