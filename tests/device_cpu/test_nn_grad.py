"""Gradients of bias and batch normalisation, response normalisation, dilation of images."""

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import outputs as run
from heald.errors import InvalidArgument, Unimplemented
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=40)
pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
NAN, INF = np.nan, np.inf


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (0, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_the_gradient_of_a_bias_is_the_sum_over_all_but_the_channels(shape):
    dy = normal(*shape, dtype=np.float64)
    np.testing.assert_allclose(run("BiasAddGrad", dy)[0], dy.sum(tuple(range(len(shape) - 1))))
    other_axes = tuple(i for i in range(len(shape)) if i != 1)
    np.testing.assert_allclose(run("BiasAddGrad", dy, data_format="NCHW")[0], dy.sum(other_axes))


def test_a_bias_gradient_wraps_around_and_is_summed_in_float32():
    assert run("BiasAddGrad", np.full((4, 1), 100, np.int8))[0].tolist() == [-112]
    assert run("BiasAddGrad", np.array([[2048], *[[1]] * 63], np.float16))[0].item() == np.float16(2111)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_gradients_of_batch_normalisation_are_those_of_its_formula(is_training, data_format):
    x, dy, scale = normal(2, 3, 4, 2, dtype=np.float64), normal(2, 3, 4, 2, seed=1), np.array([2, 3])
    fixed = (x.mean((0, 1, 2)), x.var((0, 1, 2)))

    def y(x, scale):
        mean, variance = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if is_training else fixed
        return (dy * (x - mean) / np.sqrt(variance + 0.1) * scale).sum()

    order = (0, 3, 1, 2) if data_format == "NCHW" else (0, 1, 2, 3)
    images = [np.ascontiguousarray(v.transpose(order), np.float32) for v in (dy, x)]
    vectors = [np.asarray(v, np.float32) for v in (scale, *fixed)]
    dx, dscale, doffset, *_ = run("FusedBatchNormGrad", *images, *vectors, epsilon=0.1, is_training=is_training,
                                  data_format=data_format)
    step = np.zeros_like(x)
    step[1, 2, 3, 0] = 1e-5
    slope = (y(x + step, scale) - y(x - step, scale)) / 2e-5
    np.testing.assert_allclose(dx.transpose(np.argsort(order))[1, 2, 3, 0], slope, rtol=1e-3)
    for channel in np.eye(2):
        np.testing.assert_allclose(dscale @ channel, y(x, scale + channel) - y(x, scale), rtol=1e-3)
    np.testing.assert_allclose(doffset, dy.sum((0, 1, 2)), rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_statistics_stay_in_float32(dtype):
    inputs = [normal(2, 2, 2, 3, dtype=dtype), normal(2, 2, 2, 3, dtype=dtype), *np.ones((4, 3), np.float32)]
    dx, dscale, *_, empty = run("FusedBatchNormGradV3", *inputs)
    assert (dx.dtype, dscale.dtype, empty.shape) == (dtype, np.float32, (0,))


def test_gradients_that_do_not_fit_are_refused():
    x, vector = normal(2, 2, 2, 3), normal(3)
    for inputs in ([x, x[:1], vector, vector, vector], [x, x, vector[:2], vector, vector], [x[0]] * 2 + [vector] * 3):
        with pytest.raises(InvalidArgument):
            run("FusedBatchNormGrad", *inputs)
    with pytest.raises(InvalidArgument):
        run("BiasAddGrad", vector)


@fast
@given(st.integers(0, 6), st.integers(1, 7), st.sampled_from([0.5, 0.75, 1.0]))
def test_response_normalisation_looks_at_neighbouring_channels(radius, depth, beta):
    x, attrs = normal(1, 2, 2, depth), {"depth_radius": radius, "bias": 2.0, "alpha": 0.5, "beta": beta}
    neighbours = np.abs(np.subtract.outer(np.arange(depth), np.arange(depth))) <= radius
    n = 2 + 0.5 * (x.astype(float) ** 2 @ neighbours)
    np.testing.assert_allclose(run("LRN", x, **attrs)[0], x * n**-beta, rtol=1e-5)
    dy = normal(1, 2, 2, depth, seed=1)
    y = (x * n**-beta).astype(np.float32)
    want = dy * n**-beta - beta * x * ((dy * x * n ** (-beta - 1)) @ neighbours)
    np.testing.assert_allclose(run("LRNGrad", dy, x, y, **attrs)[0], want, rtol=1e-3, atol=1e-6)


def test_response_normalisation_that_is_not_defined_is_refused():
    for x, radius in ((normal(2, 3, 4), 1), (normal(1, 1, 1, 4), -1)):
        with pytest.raises(InvalidArgument):
            run("LRN", x, depth_radius=radius)
    with pytest.raises(InvalidArgument):
        run("LRNGrad", *(normal(1, 1, 1, n) for n in (4, 4, 3)))


@fast
@given(pair, pair, st.sampled_from(["SAME", "VALID"]))
def test_dilation_with_a_filter_of_zeros_is_pooling(taps, strides, padding):
    x = normal(2, 5, 6, 2)
    got = run("Dilation2D", x, np.zeros((*taps, 2), np.float32), strides=(1, *strides, 1), rates=(1, 1, 1, 1),
              padding=padding)
    want = run("MaxPool", x, ksize=(1, *taps, 1), strides=(1, *strides, 1), padding=padding)
    np.testing.assert_array_equal(got, want)


def test_rates_spread_the_filter_of_a_dilation():
    x = np.array([1, 5, 2, 7, 3], np.int32).reshape(1, 1, 5, 1)
    kernel = np.array([10, 20, 30], np.int32).reshape(1, 3, 1)
    attrs = {"strides": (1, 1, 1, 1), "padding": "SAME"}
    assert run("Dilation2D", x, kernel, rates=(1, 1, 2, 1), **attrs)[0].reshape(-1).tolist() == [32, 37, 33, 27, 23]
    with pytest.raises(Unimplemented):
        run("Dilation2D", x, kernel, rates=(1, 1, 2, 2), **attrs)


def test_a_dilation_gives_at_least_the_lowest_number():
    x = np.array([NAN, -INF, 1, INF], np.float32).reshape(1, 1, 4, 1)
    got = run("Dilation2D", x, np.zeros((1, 1, 1), np.float32), strides=(1,) * 4, rates=(1,) * 4, padding="VALID")
    lowest = np.finfo(np.float32).min
    np.testing.assert_array_equal(got[0].reshape(-1), np.array([lowest, lowest, 1, INF], np.float32))
