"""Colors: TensorFlow's semantics."""

import colorsys

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
images = hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=3, max_side=3).map(lambda s: (*s, 3)),
                    elements=st.floats(0, 1, width=16))


def run(op, x, *amount):
    return run_op(op, [x, *(np.array(a, np.float32) for a in amount)], {"T": dtypes.of_numpy(x.dtype)})[0]


def by_pixel(function, x):
    return np.array([function(*map(float, pixel)) for pixel in x.reshape(-1, 3)]).reshape(x.shape)


@fast
@given(images)
def test_conversions_are_the_usual_ones(x):
    np.testing.assert_allclose(run("RGBToHSV", x), by_pixel(colorsys.rgb_to_hsv, x), atol=1e-5)
    np.testing.assert_allclose(run("HSVToRGB", x), by_pixel(colorsys.hsv_to_rgb, x), atol=1e-5)


@fast
@given(images, st.floats(-3, 3, width=16))
def test_hue_goes_round(x, delta):
    def rotate_hue(r, g, b):
        hue, saturation, value = colorsys.rgb_to_hsv(r, g, b)
        return colorsys.hsv_to_rgb((hue + delta) % 1, saturation, value)

    np.testing.assert_allclose(run("AdjustHue", x, delta), by_pixel(rotate_hue, x), atol=1e-4)


@fast
@given(images, st.floats(0, 3, width=16))
def test_saturation_stays_within_its_range(x, scale):
    def scale_saturation(r, g, b):
        hue, saturation, value = colorsys.rgb_to_hsv(r, g, b)
        saturation = min(saturation * scale, 1)
        if np.float32(hue) == 1:  # a whole turn, of which TensorFlow's kernel knows no color
            return (value * (1 - saturation),) * 3
        return colorsys.hsv_to_rgb(hue, saturation, value)

    np.testing.assert_allclose(run("AdjustSaturation", x, scale), by_pixel(scale_saturation, x), atol=1e-4)


def test_red_with_a_trace_of_blue_becomes_black_as_in_tensorflow():
    np.testing.assert_array_equal(run("AdjustSaturation", np.array([[[1, 0, 2**-23]]], np.float32), 1), [[[0, 0, 0]]])


def test_contrast_is_from_the_mean_of_each_channel_of_each_image():
    x = np.random.default_rng(0).random((2, 3, 4, 5), np.float32)
    mean = x.mean((1, 2), keepdims=True)
    np.testing.assert_allclose(run("AdjustContrastv2", x, 1.5), (x - mean) * 1.5 + mean, atol=1e-6)
    assert run("AdjustContrastv2", x[:, :0], 2).shape == (2, 0, 4, 5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_float_types_convert_in_their_own_precision(dtype):
    x = np.array([[0.25, 0.5, 1], [1, 1, 1]], dtype)
    got = run("RGBToHSV", x)
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(np.float64), by_pixel(colorsys.rgb_to_hsv, x), atol=0.01)


def test_a_tensor_that_is_no_color_is_refused():
    for op, shape, *amount in (("RGBToHSV", (2, 2)), ("HSVToRGB", ()), ("AdjustHue", (2, 3), 1),
                               ("AdjustSaturation", (1, 2, 4), 1), ("AdjustContrastv2", (2, 3), 1),
                               ("AdjustHue", (1, 2, 3), [1])):
        with pytest.raises(InvalidArgument):
            run(op, np.zeros(shape, np.float32), *amount)
