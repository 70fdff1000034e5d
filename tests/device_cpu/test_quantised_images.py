"""Quantised images: normalised and resized as float images, within a step; channels with ranges of their own."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=40)
QUINT8, QINT32 = dtypes.named("quint8"), dtypes.named("qint32")
LOW, HIGH = np.float32(-2), np.float32(6)


def integers(x):
    return x.view(x.dtype[0]).astype(np.int64)


def image(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8).view(QUINT8.numpy)


def floats(x, low=LOW, high=HIGH):
    return outputs("Dequantize", x, low, high, mode="MIN_FIRST")[0]


def test_a_normalised_image_is_that_of_floats():
    x, mean, variance, beta, gamma = image(1, 3, 2, 4), image(4), image(4, seed=1), image(4, seed=2), image(4, seed=3)
    variance_limits = np.float32(1), np.float32(3)
    out, low, high = outputs(
        "QuantizedBatchNormWithGlobalNormalization", x, LOW, HIGH, mean, LOW, HIGH, variance, *variance_limits, beta,
        LOW, HIGH, gamma, LOW, HIGH, Tinput=QUINT8, out_type=QINT32, variance_epsilon=0.01,
        scale_after_normalization=True)
    scale = floats(gamma) / np.sqrt(floats(variance, *variance_limits) + 0.01)
    expected = (floats(x) - floats(mean)) * scale + floats(beta)
    step = (float(high) - float(low)) / 2**32
    np.testing.assert_allclose(integers(out) * step, expected, atol=0.02)


@fast
@given(st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_each_channel_of_an_image_is_normalised_by_itself(batch, depth, has_range):
    attrs = {"output_range_given": has_range, "given_y_min": -3.0, "given_y_max": 3.0}
    x = image(batch, 4, 5, depth)
    out, low, high = outputs("QuantizedInstanceNorm", x, LOW, HIGH, **attrs)
    expected = floats(x)
    expected = (expected - expected.mean((1, 2), keepdims=True)) / expected.std((1, 2), keepdims=True)
    np.testing.assert_allclose(floats(out, low, high), expected.clip(low, high), atol=float(high - low) / 200)


def test_an_image_without_pixels_has_infinite_limits():
    assert outputs("QuantizedInstanceNorm", image(0, 2, 2, 1), LOW, HIGH)[1:] == [np.inf, np.inf]


def test_equal_pixels_are_exactly_zero():
    low, high = outputs("QuantizedInstanceNorm", np.full_like(image(1, 3, 5, 2), 7), LOW, HIGH, min_separation=0.5)[1:]
    assert (low, high) == (0, 0.5)


@fast
@given(st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_a_resized_image_is_that_of_floats(height, width, aligns):
    x, size = image(1, 3, 4, 2), np.int32([height, width])
    out, low, high = outputs("QuantizedResizeBilinear", x, size, LOW, HIGH, align_corners=aligns)
    expected = outputs("ResizeBilinear", np.float32(integers(x)), size, align_corners=aligns)[0]
    assert np.abs(integers(out) - expected).max() <= 4
    assert (low, high) == (LOW, HIGH)


def test_channels_are_requantised_by_their_own_ranges():
    words = np.int32([[[[2**30, 2**30], [-(2**29), 0]]]]).view(QINT32.numpy)
    limits = np.float32([-1, -4]), np.float32([1, 4])
    low, high = outputs("RequantizationRangePerChannel", words, *limits, clip_value_max=10.0)
    assert (float(low), float(high)) == (-2, 2)
    out = outputs("RequantizePerChannel", words, *limits, np.float32(-2), np.float32(2), out_type=dtypes.named("qint8"))
    assert integers(out[0]).reshape(-1).tolist() == [32, 127, -16, 0]


def test_a_channel_without_limits_is_refused():
    words = np.zeros((1, 1, 1, 3), np.int32).view(QINT32.numpy)
    with pytest.raises(InvalidArgument, match="channels"):
        outputs("RequantizePerChannel", words, np.float32([0, 0]), np.float32([1, 1]), np.float32(0), np.float32(1))


@fast
@given(st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=6), st.booleans())
def test_the_oldest_op_rounds_as_its_second_version(numbers, has_range):
    x, attrs = np.float32(numbers), {"range_given": has_range, "num_bits": 6}
    old = outputs("QuantizeAndDequantize", x, **attrs, input_min=-1.0, input_max=2.0)[0]
    new = outputs("QuantizeAndDequantizeV2", x, np.float32(-1), np.float32(2), **attrs)[0]
    np.testing.assert_array_equal(old, new)
