"""Activations and gradients: against their definitions and their difference quotients."""

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES

INF, NAN = np.inf, np.nan
BY_INPUT = ["LeakyReluGrad", "Relu6Grad", "ReluGrad", "SoftplusGrad", "SoftsignGrad"]
BY_OWN_OUTPUT = ["EluGrad", "SeluGrad"]
OUTPUT_FIRST = ["InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"]


def run(op, *inputs, **attrs):
    arrays = [np.asarray(x) for x in inputs]
    return run_op(op, arrays, {"T": dtypes.of_numpy(arrays[0].dtype)} | attrs)[0]


def slope(op, x):
    step = 1e-6
    return (run(op, x + step) - run(op, x - step)) / (2 * step)


@pytest.mark.parametrize("op", BY_INPUT + BY_OWN_OUTPUT + OUTPUT_FIRST)
def test_a_gradient_is_the_difference_quotient_times_what_comes_in(op):
    forward = op.removesuffix("Grad")
    x = np.array([0.3, 1.7, 5.5, 7.25])
    x = x if forward in ("Inv", "Reciprocal", "Rsqrt", "Sqrt") else np.concatenate([-x, x])
    dy = np.linspace(-2, 3, x.size)
    y = run(forward, x)
    inputs = {"y": (y, dy), "x": (dy, x), "own": (dy, y)}
    got = run(op, *inputs["y" if op in OUTPUT_FIRST else "own" if op in BY_OWN_OUTPUT else "x"])
    np.testing.assert_allclose(got, dy * slope(forward, x), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("op", "function"), [
    ("Elu", lambda x: np.where(x > 0, x, np.expm1(x))), ("Softplus", lambda x: np.logaddexp(0, x)),
    ("Selu", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    ("Softsign", lambda x: x / (1 + np.abs(x))), ("LeakyRelu", lambda x: np.where(x > 0, x, np.float32(0.2) * x)),
])
@pytest.mark.parametrize(("dtype", "rtol"), [("float16", 1e-3), ("bfloat16", 8e-3), ("float32", 1e-6)])
def test_activations_of_narrow_floats_are_rounded_once(op, function, dtype, rtol):
    x = np.array([-90, -20, -3, -0.01, 0, 0.01, 3, 20, 90], dtypes.named(dtype).numpy)
    got = run(op, x)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got.astype(np.float64), function(x.astype(np.float64)), rtol=rtol, atol=1e-7)


def test_activations_far_out():
    x = np.float32([-INF, INF, NAN])
    np.testing.assert_array_equal(run("Elu", x), [-1, INF, NAN])
    np.testing.assert_array_equal(run("Softplus", x), [0, INF, NAN])
    np.testing.assert_array_equal(run("Softsign", x), [NAN, NAN, NAN])


@pytest.mark.parametrize(("alpha", "want"), [(0.0, [-0.0, 3]), (2.0, [-4, 3]), (-1.0, [2, 3]), (0.5, [-1, 3])])
def test_the_slope_of_leaky_relu_may_be_any_number(alpha, want):
    x = np.float32([-2, 3])
    np.testing.assert_array_equal(run("LeakyRelu", x, alpha=alpha), want)
    np.testing.assert_array_equal(run("LeakyReluGrad", np.ones_like(x), x, alpha=alpha), [alpha, 1])


def test_values_that_relu_cut_off_are_multiplied_by_zero():
    got = run("ReluGrad", np.float32([INF, NAN, 1, 1]), np.float32([-1, -1, NAN, 0]))
    np.testing.assert_array_equal(got, [NAN, NAN, 0, 0])


def test_a_zero_gradient_stays_zero_where_the_slope_is_infinite():
    for op, y in (("SqrtGrad", 0), ("RsqrtGrad", INF), ("InvGrad", INF)):
        np.testing.assert_array_equal(run(op, np.float32([y]), np.float32([0])), [0])


def test_complex_gradients_conjugate_where_tensorflow_does():
    y, dy = np.complex128([1 + 2j]), np.complex128([3 - 1j])
    np.testing.assert_allclose(run("SqrtGrad", y, dy), dy * 0.5 / y.conj())
    np.testing.assert_allclose(run("InvGrad", y, dy), -dy * y.conj() ** 2)
    np.testing.assert_allclose(run("SigmoidGrad", y, dy), dy * y * (1 - y))


def test_gradients_by_the_output_need_as_many_elements_only():
    y = np.float32([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(run("SigmoidGrad", y, np.ones((3, 2), np.float32)), y * (1 - y))
    with pytest.raises(InvalidArgument, match="same number of elements"):
        run("TanhGrad", y, np.float32(1))
    with pytest.raises(InvalidArgument, match="shape"):
        run("ReluGrad", y, np.ones((3, 2), np.float32))


def test_gradients_know_what_either_shape_tells():
    partly_known, open_ = info(dtypes.float32, (2, None)), info(dtypes.float32, (None, 3))
    assert RULES["ReluGrad"].function({}, partly_known, open_).shape == (2, 3)
    assert RULES["TanhGrad"].function({}, partly_known, open_).shape == (2, None)


@pytest.mark.parametrize("op", ["Elu", "LeakyRelu", "Relu", "Relu6", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh"])
@pytest.mark.parametrize("session", [False, True])
def test_an_activation_of_a_scalar_is_that_of_a_vector_of_it(op, session):
    """NumPy's functions return numbers in place of arrays for scalars."""
    x = np.float32(-0.5)
    if session:
        with heald.Session(graph(placeholder("x", ()), node("y", op, "x"))) as opened:
            got = opened.run("y", {"x": x})
    else:
        got = run(op, x)
    assert (got.shape, got.dtype) == ((), np.float32)
    assert got == run(op, [x])[0]
