"""Gamma and Poisson numbers: their distributions, ends of their ranges, and parameters that no number fits."""

import numpy as np
import pytest
from harness.run_op import outputs, run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes

SEED = np.int64([1, 2])


def gamma(shape, alpha):
    return outputs("StatelessRandomGammaV2", np.int32(shape), SEED, np.float64(alpha))[0]


def poisson(shape, rate, dtype=dtypes.int64):
    return outputs("StatelessRandomPoisson", np.int32(shape), SEED, np.float64(rate), dtype=dtype)[0]


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_gamma_numbers_have_the_mean_and_the_variance_alpha(alpha):
    drawn = gamma([20000], alpha)
    assert abs(drawn.mean() / alpha - 1) < 0.05
    assert abs(drawn.var() / alpha - 1) < 0.1


@pytest.mark.parametrize("rate", [0.5, 9.0, 11.0, 300.0])
def test_poisson_counts_have_the_mean_and_the_variance_of_the_rate(rate):
    drawn = poisson([20000], rate)
    assert abs(drawn.mean() / rate - 1) < 0.05
    assert abs(drawn.var() / rate - 1) < 0.1


def test_more_numbers_than_are_drawn_together_are_those_of_fewer():
    assert gamma([70000], 2.0)[:1000].tolist() == gamma([1000], 2.0).tolist()


def test_a_stateful_op_and_its_older_form_draw_the_same():
    def attrs(name):
        return {"seed": 3, "seed2": 4, "S": dtypes.int32, name: dtypes.float64, "dtype": dtypes.float64}

    inputs = [np.int32([50]), np.float64([3, 20])]
    new, old = run_op("RandomPoissonV2", inputs, attrs("R")), run_op("RandomPoisson", inputs, attrs("dtype"))
    np.testing.assert_array_equal(new[0], old[0])


@pytest.mark.parametrize(("rate", "dtype"), [
    (np.nan, dtypes.int64), (1e12, dtypes.int32), (1e30, dtypes.int64), (1e6, dtypes.float16),
])
def test_rates_without_a_number_of_the_type_end_in_an_error(rate, dtype):
    """TensorFlow draws for ever."""
    with pytest.raises(InvalidArgument, match="no number of the type"):
        poisson([2], rate, dtype)


def test_parameters_without_a_distribution_give_what_tensorflow_gives():
    assert np.isnan(gamma([2], -1.0)).all()
    assert np.isnan(gamma([2], np.nan)).all()
    assert gamma([2], 0.0).tolist() == [0, 0]
    assert poisson([2], -1.0).tolist() == [0, 0]
    assert poisson([2], np.inf).tolist() == [0, 0]
    assert poisson([2], np.inf, dtypes.float32).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("shape", [[2], [3, 3], [2, 3]])
def test_a_shape_must_end_with_that_of_the_parameters(shape):
    with pytest.raises(InvalidArgument, match="must end with"):
        gamma(shape, [[1.0, 2.0]])


def test_sizes_beyond_any_memory_are_refused():
    with pytest.raises(InvalidArgument, match="elements"):
        outputs("RandomGamma", np.int64([2**40, 2**30]), np.float32([1]))
