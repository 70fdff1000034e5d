"""Pooling, bias and batch normalisation: TensorFlow's semantics."""

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import REGISTRIES, run_op
from heald.api import geometry
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
NAN, INF = np.nan, np.inf
pair = st.tuples(st.integers(1, 3), st.integers(1, 3))


def attributes(op, inputs, **attrs):
    types = {"T": dtypes.of_numpy(inputs[0].dtype)}
    if "U" in REGISTRIES.ops.get(op).attrs:
        types["U"] = dtypes.float32
    return types | attrs


def run(op, *inputs, **attrs):
    return run_op(op, list(inputs), attributes(op, inputs, **attrs))[0]


def random(*shape, dtype=np.float32):
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def pool(op, x, ksize, strides=(1, 1), padding="VALID", **attrs):
    return run(op, x, ksize=(1, *ksize, 1), strides=(1, *strides, 1), padding=padding, **attrs)


@fast
@given(st.integers(0, 2), pair, pair, st.sampled_from(["SAME", "VALID"]), st.sampled_from(["MaxPool", "AvgPool"]))
def test_pooling_counts_only_elements_of_the_input(batch, ksize, strides, padding, op):
    x = random(batch, 5, 6, 2)
    rows, columns = (geometry.window(n, k, s, 1, padding) for n, k, s in zip((5, 6), ksize, strides, strict=True))
    padded = np.pad(x, ((0, 0), rows[1:], columns[1:], (0, 0)), constant_values=NAN)
    reduce = np.nanmax if op == "MaxPool" else np.nanmean
    got = pool(op, x, ksize, strides, padding)
    assert got.shape == (batch, rows.size, columns.size, 2)
    for r, c in np.ndindex(*got.shape[1:3]) if batch else ():
        top, left = r * strides[0], c * strides[1]
        window = padded[:, top : top + ksize[0], left : left + ksize[1]]
        np.testing.assert_allclose(got[:, r, c], reduce(window, (1, 2)), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_nan_never_wins_a_maximum_and_the_lowest_finite_number_is_its_floor(dtype):
    x = np.array([NAN, 1, NAN, NAN, -INF, -INF, INF], dtype).reshape(1, 1, 7, 1)
    lowest = ml_dtypes.finfo(dtype).min
    want = np.array([1, 1, lowest, lowest, lowest, INF], dtype)
    np.testing.assert_array_equal(pool("MaxPool", x, (1, 2)).reshape(-1), want)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_integers_have_a_maximum_too(dtype):
    x = np.array([[1, 9], [3, 4]], dtype).reshape(1, 2, 2, 1)
    assert pool("MaxPool", x, (2, 2)).item() == 9


def test_a_maximum_across_the_depth_takes_neighbouring_channels():
    x = np.array([1, NAN, NAN, NAN, -INF, -INF], np.float32).reshape(1, 1, 1, 6)
    got = run("MaxPool", x, ksize=(1, 1, 1, 2), strides=(1, 1, 1, 2), padding="VALID")
    np.testing.assert_array_equal(got.reshape(-1), np.array([1, NAN, -INF], np.float32))


@pytest.mark.parametrize(("ksize", "strides", "shape", "first"), [  # recorded
    ((1, 2, 2, 1), (1, 2, 2, 3), (1, 2, 2, 2), [12, 13, 16, 17]),
    ((1, 1, 1, 1), (1, 1, 1, 2), (1, 5, 5, 2), [0, 1, 2, 3]),
    ((1, 1, 1, 2), (1, 2, 2, 2), (1, 5, 5, 1), [1, 3, 5, 7]),
])
def test_strides_count_where_there_is_a_window(ksize, strides, shape, first):
    got = run("MaxPool", np.arange(50, dtype=np.float32).reshape(1, 5, 5, 2), ksize=ksize, strides=strides,
              padding="VALID")
    assert got.shape == shape
    assert got.reshape(-1)[:4].tolist() == first


def test_pooling_that_is_not_defined_is_refused():
    x = random(1, 3, 3, 2)
    with pytest.raises(InvalidArgument):
        pool("MaxPool", x, (5, 1))
    with pytest.raises(InvalidArgument):
        pool("AvgPool", x, (0, 1))
    with pytest.raises(InvalidArgument, match="NHWC"):
        run("AvgPool", x, ksize=(1, 1, 2, 2), strides=(1, 1, 1, 1), padding="VALID", data_format="NCHW")
    with pytest.raises(InvalidArgument):
        pool("MaxPool", x, (2, 2), padding="EXPLICIT", explicit_paddings=(0, 0, 2, 0, 0, 0, 0, 0))
    with pytest.raises(Unimplemented):
        run("MaxPool", x, ksize=(2, 1, 1, 1), strides=(1, 1, 1, 1), padding="VALID")


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (0, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_bias_belongs_to_the_channels_wherever_they_are(shape):
    x = random(*shape)
    last, second = np.arange(shape[-1], dtype=np.float32), np.arange(shape[1], dtype=np.float32)
    np.testing.assert_array_equal(run("BiasAdd", x, last), x + last)
    across = second.reshape(-1, *[1] * (len(shape) - 2))
    np.testing.assert_array_equal(run("BiasAdd", x, second, data_format="NCHW"), x + across)


def test_a_bias_that_does_not_fit_is_refused():
    for x, bias in ((random(2, 3), random(4)), (random(3), random(3)), (random(2, 3), random(1, 3))):
        with pytest.raises(InvalidArgument):
            run("BiasAdd", x, bias)


def norm(x, mean, variance, op="FusedBatchNormV3", **attrs):
    scale, offset = np.array([1, 2], np.float32), np.array([0, 1], np.float32)
    inputs = [x, scale, offset, np.array(mean, np.float32), np.array(variance, np.float32)]
    return run_op(op, inputs, attributes(op, inputs, **attrs))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_inference_normalises_with_the_statistics_given(data_format, dtype):
    x = random(2, 3, 4, 2).astype(dtype)
    want = (x.astype(np.float64) - [1, 2]) / np.sqrt(np.array([4, 9]) + 1e-3) * [1, 2] + [0, 1]
    if data_format == "NCHW":
        x, want = np.ascontiguousarray(x.transpose(0, 3, 1, 2)), want.transpose(0, 3, 1, 2)
    y, mean, variance, *_ = norm(x, [1, 2], [4, 9], is_training=False, epsilon=1e-3, data_format=data_format)
    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(np.float64), want, atol=1e-5 if dtype == np.float32 else 0.02)
    np.testing.assert_array_equal([mean, variance], [[1, 2], [4, 9]])


def test_inference_keeps_small_differences_of_large_numbers():
    x = np.full((1, 1, 1, 2), 1000.25, np.float32)
    y = norm(x, [1000, 1000], [1e-6, 1e-6], is_training=False, epsilon=1e-7)[0]
    np.testing.assert_allclose(y.reshape(-1), np.array([1, 2]) * 0.25 / np.sqrt(1.1e-6) + [0, 1], rtol=1e-5)


@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
def test_training_gives_batch_statistics_and_a_sample_variance(op):
    x = random(2, 3, 4, 2)
    flat = x.reshape(-1, 2).astype(np.float64)
    y, mean, variance, *reserved = norm(x, [], [], op=op, is_training=True)
    np.testing.assert_allclose(mean, flat.mean(0), atol=1e-6)
    np.testing.assert_allclose(variance, flat.var(0, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(reserved[1], flat.var(0), rtol=1e-5)
    normal = (flat - flat.mean(0)) / np.sqrt(flat.var(0) + 1e-4) * [1, 2] + [0, 1]
    np.testing.assert_allclose(y.reshape(-1, 2), normal, atol=1e-4)


def test_training_moves_running_statistics_by_the_average_factor():
    x = random(2, 3, 4, 2)
    flat = x.reshape(-1, 2).astype(np.float64)
    _, mean, variance, *_ = norm(x, [5, 6], [7, 8], is_training=True, exponential_avg_factor=0.25)
    np.testing.assert_allclose(mean, np.array([5, 6]) * 0.75 + flat.mean(0) * 0.25, rtol=1e-5)
    np.testing.assert_allclose(variance, np.array([7, 8]) * 0.75 + flat.var(0, ddof=1) * 0.25, rtol=1e-5)


def test_infinite_running_statistics_stay_infinite_as_tensorflows_do():
    _, mean, variance, *_ = norm(random(2, 3, 4, 2), [np.inf, 6], [7, np.inf], is_training=True,
                                 exponential_avg_factor=0.25)
    assert (np.isposinf([mean, variance]) == [[True, False], [False, True]]).all()


def test_statistics_of_nothing_are_not_numbers_and_those_of_one_element_finite():
    assert np.isnan(norm(random(0, 3, 4, 2), [], [], is_training=True)[1]).all()
    assert norm(random(1, 1, 1, 2), [], [], is_training=True)[2].tolist() == [0, 0]


def test_batch_normalisation_that_does_not_fit_is_refused():
    for mean, attrs in (([1], {"is_training": False}), ([], {"is_training": True, "exponential_avg_factor": 0.5})):
        with pytest.raises(InvalidArgument):
            norm(random(1, 2, 2, 2), mean, mean, **attrs)
    with pytest.raises(InvalidArgument, match="4 or 5"):
        norm(random(2, 2), [1, 2], [1, 2], is_training=False)


@fast
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3),
       st.sampled_from(["SAME", "VALID", "EXPLICIT"]))
def test_taps_name_every_element_that_a_window_finds(length, kernel, stride, pad, padding):
    try:
        slide = geometry.window(length, kernel, stride, 1, padding, (pad, pad))
    except InvalidArgument:
        assert padding != "SAME"
        return
    pairs = sorted((o, i) for outs, ins in geometry.window_taps(length, kernel, stride, slide)
                   for o, i in zip(range(slide.size)[outs], range(length)[ins], strict=True))
    reached = ((o, o * stride + tap - slide.before) for o in range(slide.size) for tap in range(kernel))
    assert pairs == sorted((o, i) for o, i in reached if 0 <= i < length)


def test_unknown_lengths_stay_unknown_and_the_others_are_computed():
    attrs = {"data_format": "NHWC", "strides": (1, 2, 2, 1), "ksize": (1, 3, 3, 1), "padding": "SAME"}
    assert RULES["AvgPool"].function(attrs, info(dtypes.float32, (None, None, 8, 2))).shape == (None, None, 4, 2)


def test_a_window_that_is_a_little_longer_than_the_image_has_no_place():
    x = random(2, 3, 5, 2)
    assert pool("MaxPool", x, (4, 1)).shape == (2, 0, 5, 2)
    assert pool("AvgPool", x, (4, 1)).shape == (2, 0, 5, 2)
    assert pool("MaxPool", random(2, 3, 5, 0), (2, 2)).shape == (2, 2, 4, 0)


def norm_ex(x, *sides, constants=None, **attrs):
    vectors = np.float32([[1, 2, .5, -1], [0, 1, -1, .5], [.5, 0, 1, -1], [1, 4, .25, 2]] if constants is None
                         else constants)
    types = {"T": dtypes.of_numpy(x.dtype), "U": dtypes.float32, "num_side_inputs": len(sides)}
    return run_op("_FusedBatchNormEx", [x, *vectors, *sides],
                  types | {"activation_mode": "Relu", "is_training": False, "epsilon": .5} | attrs)


NORMALISED = {  # by TensorFlow 2.21 with oneDNN, without which it has no kernel for it: of constants, of the batch
    False: [[0, 2.88562, 0, 0, .40825, 0, .73205, 0, 0, 3.82843, 0, 3.02982, 1.22474, 0, 1.3094, 0, 0, 4.77124, 0,
             2.39737, 2.04124, .05719, 0, 0], [.5, 0, 1, -1], [1, 4, .25, 2]],
    True: [[0, 2.10158, 0, 0, .62725, 0, 0, .45249, 0, 2.83597, 0, 1.87783, .94088, 0, 0, .16742, 0, 3.57036, 0,
            1.59276, 1.2545, 0, 0, 0], [-1, .5, .16667, -.16667], [11.6, 8.3, 14.16667, 14.16667]],
}


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-5), (ml_dtypes.bfloat16, 2e-2)])
def test_batch_normalisation_with_an_activation_gives_what_tensorflow_gives(is_training, data_format, dtype, atol):
    x = (np.arange(24) * 7 % 11 - 5).astype(dtype).reshape(1, 2, 3, 4)
    order, back = ((0, 3, 1, 2), (0, 2, 3, 1)) if data_format == "NCHW" else ((0, 1, 2, 3),) * 2
    y, mean, variance, *_ = norm_ex(np.ascontiguousarray(x.transpose(order)), data_format=data_format,
                                    is_training=is_training)
    assert y.dtype == dtype
    for got, want in zip((y.transpose(back).reshape(-1), mean, variance), NORMALISED[is_training], strict=True):
        np.testing.assert_allclose(got.astype(np.float32), want, atol=atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_side_input_is_added_before_the_activation_and_rounded_with_it(dtype):
    x, side = random(2, 2, 2, 4, dtype=dtype), np.full((2, 2, 2, 4), .0004, dtype)
    ones = np.stack([np.ones(4), np.ones(4), np.zeros(4), np.full(4, .5)])
    total = x.astype(np.float32) + 1 + side.astype(np.float32)
    got = norm_ex(x, side, constants=ones, activation_mode="Identity")[0]
    np.testing.assert_array_equal(got, total.astype(dtype))
    np.testing.assert_array_equal(norm_ex(x, side, constants=ones)[0], np.maximum(total, 0).astype(dtype))


def test_fused_batch_normalisations_that_are_not_defined_are_refused():
    x = random(1, 2, 2, 4)
    for sides, attrs in (((x, x), {}), ((x[:, :1],), {}), ((), {"activation_mode": "Elu"})):
        with pytest.raises(InvalidArgument):
            norm_ex(x, *sides, **attrs)
    with pytest.raises(InvalidArgument, match="divisible by 4"):
        norm_ex(random(1, 2, 2, 2), constants=np.ones((4, 2)))
    with pytest.raises(InvalidArgument):
        norm_ex(random(1, 2, 2, 2, 4))
