"""Division, remainders, powers and bits: TensorFlow's rules for signs, zeros and overflow."""

import numpy as np
import pytest
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo, constant_info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

INF, NAN = np.inf, np.nan
fast = settings(max_examples=60)
int16s = hnp.arrays(np.int16, st.just((5,)))


def run(op, x, y=None):
    inputs = [np.asarray(a) for a in (x, y) if a is not None]
    return run_op(op, inputs, {"T": dtypes.of_numpy(inputs[0].dtype)})[0]


def same(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@fast
@given(int16s, int16s.map(lambda y: np.where(y == 0, np.int16(1), y)))
def test_quotient_times_divisor_and_remainder_are_the_dividend(x, y):
    for divide, remainder in (("FloorDiv", "FloorMod"), ("TruncateDiv", None), ("Div", None)):
        quotient = run(divide, x, y)
        remainders = run(remainder, x, y) if remainder else x - quotient * y
        same(quotient * y + remainders, x)
        assert (np.abs(remainders.astype(int)) < np.abs(y.astype(int))).all()
        sign = y if remainder else x
        assert ((remainders == 0) | (np.sign(remainders) == np.sign(sign))).all()
    wide_x, wide_y = x.astype(np.int64), y.astype(np.int64)
    same(run("Mod", wide_x, wide_y), run("TruncateMod", wide_x, wide_y))
    same(run("Mod", wide_x, wide_y), wide_x - run("TruncateDiv", wide_x, wide_y) * wide_y)


@pytest.mark.parametrize("op", ["Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"])
def test_integers_are_not_divided_by_zero_but_nothing_is(op):
    with pytest.raises(InvalidArgument, match="division by zero"):
        run(op, np.int32([1, 2]), np.int32([1, 0]))
    assert run(op, np.int32([]), np.int32(0)).size == 0


@pytest.mark.parametrize("op", ["Div", "FloorDiv", "TruncateDiv"])
def test_the_least_integer_divided_by_minus_one_wraps_around(op):
    same(run(op, np.int32([-(2**31)]), np.int32([-1])), np.int32([-(2**31)]))


def test_the_floor_is_of_the_rounded_quotient():
    same(run("FloorDiv", np.float64([1]), np.float64([0.1])), np.float64([10]))  # np.floor_divide: 9
    same(run("FloorDiv", np.float32([-1, 1]), np.float32([INF, 0])), np.float32([-0.0, INF]))
    same(run("TruncateDiv", np.float32([-7, 7]), np.float32([2, 2])), np.float32([-3, 3]))


def test_a_remainder_of_zero_keeps_the_sign_of_the_dividend():
    same(run("FloorMod", np.float32([-4, 4, -1]), np.float32([2, -2, 3])), np.float32([-0.0, 0.0, 2]))


@pytest.mark.parametrize(("op", "x", "y", "want"), [
    ("DivNoNan", [1, 0, NAN], [0, 0, 0], [0, 0, 0]),
    ("MulNoNan", [INF, NAN, 2], [0, -0.0, 3], [0, 0, 6]),
    ("Xdivy", [0, 0, 1], [0, NAN, 0], [0, 0, INF]),
    ("Xlogy", [0, 0, 1], [0, NAN, 0], [0, 0, -INF]),
    ("Xlog1py", [0, 0, 1], [-1, NAN, -1], [0, 0, -INF]),
])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_zero_decides(op, x, y, want, dtype):
    kind = dtypes.named(dtype).numpy
    np.testing.assert_array_equal(run(op, np.array(x, kind), np.array(y, kind)).astype(np.float64), want)


def test_a_scalar_that_decides_decides_everywhere():
    same(run("Xlogy", np.float32(0), np.float32([[0, -1]])), np.float32([[0, 0]]))


def test_integer_powers_wrap_around_and_are_not_negative():
    same(run("Pow", np.int8([2, 3, 0]), np.int8([9, 7, 0])), np.int8([0, -117, 1]))
    with pytest.raises(InvalidArgument, match="negative integer powers"):
        run("Pow", np.int32([1]), np.int32([-1]))
    assert run("Pow", np.int32([]), np.int32(-1)).size == 0


def test_shifts_stay_within_the_bits_of_the_type():
    same(run("LeftShift", np.int8([1, -1, 3]), np.int8([9, -1, 7])), np.int8([-128, -1, -128]))
    same(run("RightShift", np.int8([1, -1, -3, 64]), np.int8([9, -1, 7, -2])), np.int8([0, -1, -1, 64]))
    same(run("RightShift", np.uint8([255]), np.uint8([200])), np.uint8([1]))


def test_bits_of_negative_numbers_are_those_of_their_complement():
    same(run("PopulationCount", np.int8([-1, -128, 3])), np.uint8([8, 1, 2]))
    same(run("PopulationCount", np.array(-1)), np.array(64, np.uint8))


def test_known_elements_are_divided_as_long_as_no_divisor_is_zero():
    def infer_quotient(op, x, y):
        return RULES[op].function({}, x, constant_info(np.int32(y)))

    same(infer_quotient("FloorDiv", constant_info(np.int32([7, -7])), 2).value, np.int32([3, -4]))
    same(infer_quotient("Div", constant_info(np.int32([7, -7])), 2).value, np.int32([3, -3]))
    same(infer_quotient("FloorDiv", constant_info(np.int32([-(2**31)])), -1).value, np.int32([-(2**31)]))
    assert infer_quotient("FloorMod", constant_info(np.int32([7])), 0).value is None
    batch = ValueInfo(TensorMetadata(dtypes.int32, (2,)), dims=(None, 7))
    assert infer_quotient("FloorDiv", batch, 2).dims == (None, 3)
    assert RULES["FloorDiv"].function({}, constant_info(np.int32([6, 6])), batch).value is None


@pytest.mark.parametrize(("op", "shifted"), [("LeftShift", np.left_shift), ("RightShift", np.right_shift)])
def test_many_shifts_are_held_within_the_number_of_bits(op, shifted):
    rng = np.random.default_rng(0)
    x, by = rng.integers(-9, 9, (2, 150_000)).astype(np.int32), rng.integers(-3, 40, (2, 150_000)).astype(np.int32)
    got = run(op, x, by)
    np.testing.assert_array_equal(got, shifted(x, by.clip(0, 31)))


def test_a_remainder_of_zero_has_the_sign_of_what_was_divided():
    x, y = np.meshgrid(np.float32([-4, -3, -0.0, 0.0, 3, 4, np.inf, np.nan]), np.float32([-2, 2, 0, np.inf]))
    got = run("FloorMod", x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, np.mod(x, y))
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(x[got == 0]))
