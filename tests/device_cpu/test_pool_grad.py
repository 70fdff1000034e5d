"""Pooling in 3-D, positions of the largest elements, and the gradients of pooling."""

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import outputs as run
from heald.errors import InvalidArgument, Unimplemented
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=40)
pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
padding = st.sampled_from(["SAME", "VALID"])
NAN, INF = np.nan, np.inf


def random(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).permutation(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def window(ksize, strides, padding):
    return {"ksize": (1, *ksize, 1), "strides": (1, *strides, 1), "padding": padding}


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
@fast
@given(pair, pair, padding)
def test_pooling_of_one_slice_is_pooling_in_2d(op, ksize, strides, padding):
    x = random(2, 5, 6, 2)
    (want,) = run(op, x, **window(ksize, strides, padding))
    (got,) = run(f"{op}3D", x[:, None], **window((1, *ksize), (1, *strides), padding))
    np.testing.assert_allclose(got[:, 0], want, rtol=1e-6)


@fast
@given(pair, pair, padding)
def test_window_and_strides_may_be_inputs(ksize, strides, padding):
    x, attrs = random(2, 5, 6, 2), window(ksize, strides, padding)
    inputs = [np.array(attrs[name], np.int32) for name in ("ksize", "strides")]
    np.testing.assert_array_equal(run("MaxPoolV2", x, *inputs, padding=padding), run("MaxPool", x, **attrs))


@fast
@given(pair, pair, padding, st.booleans(), st.sampled_from([dtypes.int32, dtypes.int64]))
def test_a_position_is_that_of_the_largest_element(ksize, strides, padding, with_batch, index):
    x, attrs = random(2, 5, 6, 3), window(ksize, strides, padding)
    largest, position = run("MaxPoolWithArgmax", x, include_batch_in_index=with_batch, Targmax=index, **attrs)
    np.testing.assert_array_equal([largest], run("MaxPool", x, **attrs))
    assert position.dtype == index.numpy
    images = x.reshape(1, -1) if with_batch else x.reshape(2, -1)
    at_position = np.take_along_axis(images, position.reshape(len(images), -1), 1).reshape(largest.shape)
    np.testing.assert_array_equal(at_position, largest)


def test_the_first_of_equal_elements_is_the_largest_and_nan_only_where_it_is_first():
    x = np.array([NAN, 1, NAN, 3, 3], np.float32).reshape(1, 1, 5, 1)
    largest, position = run("MaxPoolWithArgmax", x, **window((1, 2), (1, 1), "VALID"))
    np.testing.assert_array_equal(largest.reshape(-1), np.array([NAN, 1, NAN, 3], np.float32))
    assert position.reshape(-1).tolist() == [0, 1, 2, 3]


@fast
@given(pair, pair, padding, st.sampled_from([np.float64, np.int32, np.uint8, ml_dtypes.bfloat16]))
def test_a_gradient_goes_where_the_largest_element_is(ksize, strides, padding, dtype):
    x, attrs = random(2, 3, 4, 2, dtype=dtype), window(ksize, strides, padding)
    y, position = run("MaxPoolWithArgmax", x, include_batch_in_index=True, **attrs)
    dy = random(*y.shape, dtype=dtype, seed=1)
    want = np.zeros(x.size, dtype)
    np.add.at(want, position.reshape(-1), dy.reshape(-1))
    np.testing.assert_array_equal(run("MaxPoolGrad", x, y, dy, **attrs), [want.reshape(x.shape)])


@pytest.mark.parametrize("op", ["AvgPool", "AvgPool3D"])
@fast
@given(pair, pair, padding)
def test_the_gradient_of_an_average_is_its_adjoint(op, ksize, strides, padding):
    more = (2,) * (op == "AvgPool3D")
    x, attrs = random(2, *more, 5, 6, 2), window((*more, *ksize), (*more, *strides), padding)
    (y,) = run(op, x, **attrs)
    dy = random(*y.shape, seed=1)
    (dx,) = run(f"{op}Grad", np.array(x.shape, np.int32), dy, **attrs)
    np.testing.assert_allclose((dx.astype(float) * x).sum(), (dy.astype(float) * y).sum(), rtol=1e-5)


def test_all_elements_as_large_as_the_largest_get_the_gradient_in_3d():
    x = np.array([1, 1 + 5e-6, 0, INF], np.float32).reshape(1, 1, 1, 4, 1)
    y = np.array([1 + 5e-6, 1 + 5e-6, INF], np.float32).reshape(1, 1, 1, 3, 1)
    (got,) = run("MaxPool3DGrad", x, y, np.array([1, 2, 4], np.float32).reshape(y.shape),
                 **window((1, 1, 2), (1, 1, 1), "VALID"))
    assert got.reshape(-1).tolist() == [1, 3, 0, 0]


def test_pooling_that_is_not_defined_is_refused():
    x, attrs = random(1, 3, 3, 2), window((2, 2), (1, 1), "SAME")
    with pytest.raises(InvalidArgument):
        run("MaxPoolGrad", x, x, x[:, :2], **attrs)
    with pytest.raises(InvalidArgument):
        run("AvgPoolGrad", np.array([1, 3, 4, 2], np.int32), x, **attrs)
    with pytest.raises(InvalidArgument):
        run("MaxPoolWithArgmax", x[:0], **attrs)
    with pytest.raises(InvalidArgument):
        run("MaxPool3D", x, ksize=(1, 2, 2, 2, 1), strides=(1, 1, 1, 1, 1), padding="SAME")
    with pytest.raises(Unimplemented):
        run("MaxPoolGrad", x, x, x, ksize=(1, 1, 1, 1), strides=(1, 1, 1, 2), padding="SAME")
    with pytest.raises(Unimplemented):
        run("MaxPool3D", x[None], ksize=(1, 1, 1, 1, 2), strides=(1, 1, 1, 1, 2), padding="SAME")


def test_a_window_that_is_not_known_leaves_the_shape_open():
    ksize = info(dtypes.int32, (4,))
    attrs = {"T": dtypes.float32, "padding": "SAME", "data_format": "NHWC"}
    got = RULES["MaxPoolV2"].function(attrs, info(dtypes.float32, (1, 2, 3, 4)), ksize, ksize)
    assert got.shape == (None,) * 4


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
def test_a_window_costs_no_more_than_what_it_reaches(op):
    x = random(1, 3, 3, 2)
    (got,) = run(op, x, **window((2**31 - 1, 2**31 - 1), (1, 1), "SAME"))
    want = x.max((1, 2)) if op == "MaxPool" else x.mean((1, 2))
    np.testing.assert_allclose(got, np.broadcast_to(want[:, None, None], x.shape))
