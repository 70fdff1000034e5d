"""Floats rounded as if they were small integers."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
floats = hnp.arrays(np.float32, st.integers(1, 9), elements=st.floats(-100, 100, width=32))


def run(op, *inputs, **attrs):
    return outputs(op, *inputs, **attrs)[0]


@fast
@given(floats, st.integers(2, 12), st.booleans())
def test_a_quantized_number_stays_quantized_and_is_within_half_a_step(x, bits, narrow):
    attrs = {"num_bits": bits, "narrow_range": narrow}
    ends = np.float32(-20), np.float32(30)
    once = run("FakeQuantWithMinMaxVars", x, *ends, **attrs)
    np.testing.assert_allclose(run("FakeQuantWithMinMaxVars", once, *ends, **attrs), once, atol=1e-4)
    step = 50 / (2**bits - 1 - narrow)
    assert (np.abs(once - x)[(x > -20 + step) & (x < 30 - step)] <= step * 0.501).all()
    assert np.unique(once).size <= 2**bits


def test_fake_quantization_by_attributes_inputs_and_channels_agree():
    x = np.linspace(-8, 8, 30, dtype=np.float32).reshape(10, 3)
    want = run("FakeQuantWithMinMaxArgs", x, min=-6.0, max=6.0)
    np.testing.assert_array_equal(run("FakeQuantWithMinMaxVars", x, np.float32(-6), np.float32(6)), want)
    ends = np.float32([-6, 0, -6]), np.float32([6, 0, 6])
    got = run("FakeQuantWithMinMaxVarsPerChannel", x, *ends)
    np.testing.assert_array_equal(got[:, [0, 2]], want[:, [0, 2]])
    assert not got[:, 1].any()  # a channel without a range


def test_ties_go_to_the_even_step_or_up():
    x = np.float32([0.5, 1.5, -0.5, -1.5, 4])
    ends = np.float32(-4), np.float32(3)
    even = run("QuantizeAndDequantizeV2", x, *ends, range_given=True, num_bits=3)
    assert even.tolist() == [0, 2, 0, -2, 3]
    up = run("QuantizeAndDequantizeV2", x, *ends, range_given=True, num_bits=3, round_mode="HALF_UP")
    assert up.tolist() == [1, 2, 0, -1, 3]


@pytest.mark.parametrize("ends", [(np.nan, 1), (0, np.nan), (1, 0)])
def test_a_range_that_is_given_has_two_ends_in_order(ends):
    with pytest.raises(InvalidArgument, match="Invalid range"):
        run("QuantizeAndDequantizeV2", np.float32([1]), *map(np.float32, ends), range_given=True)


def test_a_range_per_axis_is_that_of_each_slice():
    x = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
    none, bits = np.zeros(4, np.float32), np.int32(4)
    got = run("QuantizeAndDequantizeV3", x, none, none, bits, range_given=False, axis=1)
    for i in range(4):
        alone = run("QuantizeAndDequantizeV3", x[:, i], none[0], none[0], bits, range_given=False)
        np.testing.assert_array_equal(got[:, i], alone)


@pytest.mark.parametrize(("op", "inputs", "attrs"), [
    ("FakeQuantWithMinMaxArgs", [np.float32([1])], {"min": 1.0, "max": 1.0}),
    ("FakeQuantWithMinMaxArgs", [np.float32([1])], {"num_bits": 17}),
    ("FakeQuantWithMinMaxVarsPerChannel", [np.ones((2, 3), np.float32), *np.zeros((2, 2), np.float32)], {}),
    ("QuantizeAndDequantizeV2", [np.float32([1]), np.float32(1), np.float32(0)], {"range_given": True}),
    ("QuantizeAndDequantizeV2", [np.float32([1]), np.float32(0), np.float32(1)], {"axis": 1}),
    ("QuantizeAndDequantizeV3", [np.float32([1]), np.float32(0), np.float32(1), np.int32(0)], {}),
])
def test_a_range_that_does_not_fit_is_refused(op, inputs, attrs):
    with pytest.raises(InvalidArgument):
        run(op, *inputs, **attrs)
