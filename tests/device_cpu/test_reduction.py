"""Reductions and softmax: TensorFlow's semantics, and the inference of their outputs."""

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import REGISTRIES, run_op
from heald.api import geometry
from heald.errors import InvalidArgument
from heald.runtime.contract.op import infer
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo, constant_info, info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

INF, NAN = np.inf, np.nan
NUMPY = {"Sum": np.sum, "Mean": np.mean, "Prod": np.prod, "Max": np.max, "Min": np.min}
fast = settings(max_examples=60)


def reduce(op, x, axes, keep_dims=False):
    attrs = {"T": dtypes.of_numpy(x.dtype), "Tidx": dtypes.int32, "keep_dims": keep_dims}
    return run_op(op, [x, np.array(axes, np.int32)], attrs)[0]


def arg(op, x, axis, output_type=dtypes.int64):
    attrs = {"T": dtypes.of_numpy(x.dtype), "Tidx": dtypes.int32, "output_type": output_type}
    return run_op(op, [x, np.array(axis, np.int32)], attrs)[0]


def along_last(op, x):
    return run_op(op, [x], {"T": dtypes.of_numpy(x.dtype)})[0]


def same(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


# Laws

arrays = hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=4, max_side=4),
                    elements=st.floats(-100, 100, allow_subnormal=False))


@fast
@given(st.sampled_from(sorted(NUMPY)), arrays, st.booleans(), st.data())
def test_reductions_are_numpys_in_float64(op, x, keep_dims, data):
    axis = st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.nothing()
    axes = data.draw(st.lists(axis, unique_by=lambda a: a % x.ndim))
    with np.errstate(all="ignore"):
        want = NUMPY[op](x, axis=tuple(axes), keepdims=keep_dims)
    np.testing.assert_allclose(reduce(op, x, axes, keep_dims), want, rtol=1e-12, atol=1e-12)


@fast
@given(hnp.array_shapes(min_dims=0, max_dims=4, max_side=3), st.booleans(), st.data())
def test_an_inference_from_partly_unknown_inputs_holds(shape, keep_dims, data):
    rank = len(shape)
    axes = data.draw(st.lists(st.integers(0, rank - 1), unique=True)) if rank else []
    true = NUMPY["Sum"](np.zeros(shape), axis=tuple(axes), keepdims=keep_dims).shape
    hidden = tuple(data.draw(st.sampled_from([length, None])) for length in shape)
    known_axes = constant_info(np.array(axes, np.int32))
    attrs = {"T": dtypes.float32, "Tidx": dtypes.int32, "keep_dims": keep_dims}
    for x in (info(dtypes.float32, hidden), info(dtypes.float32, None)):
        for y in (known_axes, ValueInfo(known_axes.meta)):
            inferred = infer(REGISTRIES.ops.get("Sum"), RULES["Sum"], attrs, [x, y])[0].shape
            assert inferred is None or len(inferred) == len(true)
            assert inferred is None or all(i in (None, t) for i, t in zip(inferred, true, strict=True))


@fast
@given(hnp.arrays(np.float32, hnp.array_shapes(max_side=5), elements=st.floats(-50, 50, width=32)))
def test_softmax_adds_up_to_one_and_log_softmax_is_its_logarithm(x):
    y = along_last("Softmax", x)
    np.testing.assert_allclose(y.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.exp(along_last("LogSoftmax", x)), y, rtol=1e-4, atol=1e-30)


# Semantics


def test_integer_sums_wrap_around_and_integer_means_do_not():
    x = np.uint8([200, 100, 3])
    same(reduce("Sum", x, [0]), np.array(47, np.uint8))
    same(reduce("Mean", x, [0]), np.array(101, np.uint8))


def test_integer_means_round_toward_zero():
    same(reduce("Mean", np.int32([[-7, 7], [0, 0]]), [0]), np.int32([-3, 3]))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_two_byte_floats_are_summed_in_float32(dtype):
    x = np.ones(4096, dtype)
    same(reduce("Sum", x, [0]), np.array(4096, dtype))
    same(reduce("Mean", x * dtype(60), [0]), np.array(60, dtype))


@pytest.mark.parametrize(("op", "of_floats", "of_integers"), [
    ("Sum", 0, 0), ("Prod", 1, 1), ("Mean", NAN, 0), ("Max", -INF, -128), ("Min", INF, 127),
])
def test_reductions_of_nothing(op, of_floats, of_integers):
    same(reduce(op, np.ones((0, 2), np.float32), [0]), np.full(2, of_floats, np.float32))
    same(reduce(op, np.ones((0, 2), np.int8), [0]), np.full(2, of_integers, np.int8))
    assert reduce(op, np.ones((0, 2), np.float32), [1]).shape == (0,)


def test_a_reduction_over_no_axes_changes_nothing():
    x = np.float32([[1, 2], [3, 4]])
    for op in NUMPY:
        same(reduce(op, x, []), x)


def test_axes_may_be_a_scalar_and_negative():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    same(reduce("Max", x, -1), np.float32([2, 5]))
    same(reduce("Max", x, [-1, 0], keep_dims=True), np.float32([[5]]))


def test_nan_wins_a_maximum():
    assert np.isnan(reduce("Max", np.float32([1, NAN, 3]), [0]))


@pytest.mark.parametrize(("axes", "reason"), [
    ([3], r"Invalid reduction dimension \(3 for input with 3"), ([-4], "Invalid reduction dimension"),
    ([1, -2], "duplicate dimension: 1"), ([[0]], "scalar or vector"),
])
def test_axes_that_do_not_exist_or_repeat_are_refused(axes, reason):
    with pytest.raises(InvalidArgument, match=reason):
        reduce("Mean", np.ones((2, 3, 4), np.float32), axes)


def test_arg_extremes_give_the_first_and_pass_over_nan():
    same(arg("ArgMax", np.float32([1, 3, 3]), 0), np.array(1))
    same(arg("ArgMax", np.float32([[NAN, 1, 2], [NAN, NAN, NAN]]), 1), np.array([2, 0]))
    for op, value in (("ArgMax", 9), ("ArgMin", -9)):  # one NaN among many numbers, in small and large arrays
        for count in (8, 5000):
            x = np.zeros((2, count), np.float32)
            x[0, :2], x[1, 5] = (NAN, value), value
            same(arg(op, x, 1), np.array([1, 5]))
    same(arg("ArgMin", np.float32([[NAN, 1, 2], [3, NAN, 3]]), -1), np.array([1, 0]))
    same(arg("ArgMax", np.array([False, True, True]), 0), np.array(1))


def test_the_index_has_the_type_that_was_asked_for():
    x = np.zeros(40000, np.float32)
    x[-1] = 1
    same(arg("ArgMax", x, 0, dtypes.uint16), np.array(39999, np.uint16))
    same(arg("ArgMax", x, 0, dtypes.int16), np.array(39999 - 65536, np.int16))


@pytest.mark.parametrize(("shape", "axis", "reason"), [
    ((3, 4), 2, r"range \[-2, 2\), but got 2"), ((), 0, "range"),
    ((3, 0), 1, r"axis 1 is empty in shape \[3,0\]"),
    ((3,), [0], "scalar"),
])
def test_arg_extremes_along_no_axis_are_refused(shape, axis, reason):
    with pytest.raises(InvalidArgument, match=reason):
        arg("ArgMax", np.ones(shape, np.float32), axis)


def test_arg_extremes_of_no_rows():
    assert arg("ArgMin", np.ones((0, 3), np.float32), 1).shape == (0,)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_takes_large_and_no_elements_and_no_scalar(op):
    large = along_last(op, np.float32([1e4, 1e4 - 1]))
    assert np.isfinite(large).all()
    for shape in ((0,), (0, 3), (3, 0)):
        assert along_last(op, np.ones(shape, np.float32)).shape == shape
    with pytest.raises(InvalidArgument, match="logits must have >= 1 dimension"):
        along_last(op, np.float32(1))


def test_softmax_of_half_is_rounded_once():
    x = np.float16([0.5, 1.5, -3, 4])
    wide = np.exp(x.astype(np.float64))
    same(along_last("Softmax", x), (wide / wide.sum()).astype(np.float16))


def test_norms_are_roots_of_sums_of_squares():
    x = np.float64([[3, 4], [-6, 8]])
    same(reduce("EuclideanNorm", x, [1]), np.array([5.0, 10.0]))
    same(reduce("EuclideanNorm", np.complex64([3 + 4j]), [0]), np.array(5, np.complex64))
    same(run_op("L2Loss", [x], {"T": dtypes.float64})[0], np.array(62.5))


def test_all_and_any_of_nothing_are_true_and_false():
    nothing = np.ones((2, 0), bool)
    same(reduce("All", nothing, [1]), np.array([True, True]))
    same(reduce("Any", nothing, [1], keep_dims=True), np.array([[False], [False]]))


# Metadata


def test_the_product_of_a_known_shape_is_known():
    def product(x, axes, keep_dims=False):
        return RULES["Prod"].function({"keep_dims": keep_dims}, x, constant_info(np.int32(axes)))

    same(product(constant_info(np.int32([2, 3, 4])), [0]).value, np.array(24, np.int32))
    same(product(constant_info(np.int32([])), [0]).value, np.array(1, np.int32))
    partly = ValueInfo(TensorMetadata(dtypes.int32, (2,)), dims=(None, 3))
    assert product(partly, [0]).dims == (None,)
    assert product(partly, [0], keep_dims=True).shape == (1,)


def test_at_most_the_rank_is_known_without_the_axes():
    x, axes = info(dtypes.float32, (2, 3)), info(dtypes.int32, (1,))
    assert RULES["Mean"].function({"keep_dims": True}, x, axes).shape == (None, None)
    assert RULES["Mean"].function({"keep_dims": False}, x, axes).shape is None
    assert RULES["ArgMax"].function({"output_type": dtypes.int64}, x, info(dtypes.int32, ())).shape == (None,)


def test_reduction_axes_are_counted_from_the_front_in_order():
    assert geometry.reduction_axes(4, [-1, 1]) == (1, 3)
    assert geometry.reduction_axes(0, []) == ()
