"""Special functions and complex numbers: against the C library and known values."""

import math

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

INF, NAN = np.inf, np.nan
fast = settings(max_examples=100)


def run(op, *inputs, **attrs):
    arrays = [np.asarray(x) for x in inputs]
    return run_op(op, arrays, {"T": dtypes.of_numpy(arrays[0].dtype)} | attrs)[0]


@fast
@given(st.lists(st.floats(-40, 40), min_size=1))
def test_the_error_functions_are_those_of_c(x):
    for op, function in (("Erf", math.erf), ("Erfc", math.erfc)):
        want = [function(v) for v in x]
        np.testing.assert_allclose(run(op, np.float64(x)), want, rtol=1e-12, atol=1e-300)
        narrow = np.float32(x)
        want = [function(v) for v in narrow.tolist()]
        np.testing.assert_allclose(run(op, narrow), want, rtol=1e-6, atol=1e-44)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_the_error_functions_at_their_ends(dtype):
    x = np.array([-INF, -0.0, INF, NAN], dtype)
    assert run("Erf", x).astype(float).tolist()[:3] == [-1, 0, 1]
    assert run("Erfc", x).astype(float).tolist()[:3] == [2, 1, 0]
    assert np.isnan(run("Erf", x).astype(float)[3])
    assert np.isnan(run("Erfc", x).astype(float)[3])
    assert np.abs(run("Erf", np.linspace(-6, 6, 2000).astype(dtype)).astype(float)).max() == 1
    assert run("Erf", np.array(1, dtype)).shape == ()


@pytest.mark.parametrize(("op", "inputs", "want"), [
    ("Lgamma", [[1, 0.5, -INF, 0]], [0, math.log(math.pi) / 2, INF, INF]),
    ("Digamma", [[1, 0, -3]], [-np.euler_gamma, NAN, NAN]),
    ("Polygamma", [[1, 0, 2, 0.5, -1], [1, 1, 1, 1, 1]],
     [math.pi**2 / 6, -np.euler_gamma, -2.4041138063191886, NAN, NAN]),
    ("Zeta", [[2, INF, 3, 2], [1, 2, -1, -1]], [math.pi**2 / 6, 0, NAN, INF]),
    ("Zeta", [[INF, INF, INF, 1e30, 1e18, -INF], [0.5, 1, -1.5, 2, -2, 2]], [INF, 1, INF, 0, INF, NAN]),
    ("Igamma", [[1, 0, 0, -1], [1, 1, 0, 2]], [1 - math.exp(-1), NAN, 0, NAN]),
    ("Igammac", [[1, 0, INF], [1, 1, INF]], [math.exp(-1), NAN, 0]),
    ("Erfinv", [[0, 1, -1, 2]], [0, INF, -INF, NAN]), ("Ndtri", [[0.5, 0, 1]], [0, -INF, INF]),
    ("BesselI0e", [[0]], [1]), ("BesselI1e", [[0]], [0]),
    ("BesselI0", [[0, INF]], [1, NAN]), ("BesselJ0", [[0, 2.404825557695773]], [1, 0]), ("BesselJ1", [[0]], [0]),
    ("BesselK0", [[0, -1, INF, NAN]], [INF, INF, 0, NAN]), ("BesselK1e", [[0, -2]], [INF, INF]),
    ("BesselY0", [[0, -1]], [-INF, -INF]), ("BesselY1", [[-1, NAN]], [-INF, NAN]),
    ("Expint", [[0, 1, -1, INF]], [-INF, 1.8951178163559368, NAN, NAN]), ("Dawsn", [[0, 1]], [0, 0.5380795069127684]),
    ("FresnelCos", [[0, INF, -INF]], [0, 0.5, -0.5]), ("FresnelSin", [[0, 1e30, -1e30]], [0, 0.5, -0.5]),
    ("Spence", [[1, 0, -1]], [0, math.pi**2 / 6, NAN]),
    ("Betainc", [[2, 0, INF, NAN, 500], [2, 1, 1, 2, 30], [0.5, 0.5, 0.5, 1, 0.5]], [0.5, NAN, NAN, 1, 0]),
    ("IgammaGradA", [[1, 2, 0, -1, INF, 3], [0, INF, 1, 2, 2, -1]], [0, 0, NAN, NAN, 0, NAN]),
])
def test_special_functions_at_known_places(op, inputs, want):
    pytest.importorskip("scipy")
    np.testing.assert_allclose(run(op, *map(np.float64, inputs)), want, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(run(op, *map(np.float32, inputs)), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("a", [0.03, 0.7, 1.0, 5.0, 80.0, 3000.0])
def test_the_gradients_of_gamma_are_limits_of_differences(a):
    special = pytest.importorskip("scipy.special")
    x = a * np.linspace(0.5, 1.5, 7)
    step = 1e-5 * a
    slope = (special.gammainc(a + step, x) - special.gammainc(a - step, x)) / (2 * step)
    np.testing.assert_allclose(run("IgammaGradA", np.float64(a), x), slope, rtol=1e-5, atol=1e-9)
    quantiles = special.gammainc(a, x)
    inside = (quantiles > 1e-3) & (quantiles < 0.999)
    moved = [special.gammaincinv(a + sign * step, quantiles[inside]) for sign in (1, -1)]
    np.testing.assert_allclose(run("RandomGammaGrad", np.float64(a), x)[inside], (moved[0] - moved[1]) / (2 * step),
                               rtol=1e-5)


def test_bessel_functions_overflow_with_the_exponential():
    pytest.importorskip("scipy")
    assert run("BesselI1", np.float32([-90, 88, 90])).tolist() == [-INF, run("BesselI1", np.float32([88]))[0], INF]
    assert np.isfinite(run("BesselI1", np.float64([-90, 90]))).all()


@pytest.mark.parametrize("shapes", [[(2,), (1,), (2,)], [(1, 2), (2,), (2,)], [(), (2,), (3,)]])
def test_only_scalars_broadcast_in_betainc(shapes):
    with pytest.raises(InvalidArgument, match="same shape"):
        run("Betainc", *(np.full(shape, 0.5) for shape in shapes))


def test_orders_broadcast():
    pytest.importorskip("scipy")
    assert run("Polygamma", np.float32([[0], [1]]), np.float32([1, 2, 3])).shape == (2, 3)
    assert run("Igamma", np.float32(0), np.float32([1, 2])).shape == (2,)


def test_complex_numbers_are_made_and_taken_apart():
    real, imag = np.float32([[1], [2]]), np.float32([3, -4])
    numbers = run("Complex", real, imag, Tout=dtypes.complex64)
    np.testing.assert_array_equal(numbers, real + 1j * imag)
    for op, function in {"Real": np.real, "Imag": np.imag, "ComplexAbs": np.abs, "Angle": np.angle}.items():
        np.testing.assert_array_equal(run(op, numbers, Tout=dtypes.float32), function(numbers))
    np.testing.assert_array_equal(run("Conj", numbers), numbers.conj())


def test_the_logarithm_near_one_keeps_small_complex_numbers():
    x = np.complex64([1e-9, 1e-4 + 1e-5j, -1e-9 + 1e-12j, 3 + 4j])
    wide = x.astype(np.complex128)
    want = [*(wide - wide**2 / 2 + wide**3 / 3)[:3], np.log(4 + 4j)]
    np.testing.assert_allclose(run("Log1p", x), want, rtol=1e-6)
    doubled = run("Xlog1py", np.complex64([2, 2, 0, 0]), x)
    np.testing.assert_allclose(doubled, [2 * want[0], 2 * want[1], 0, 0], rtol=1e-6)
