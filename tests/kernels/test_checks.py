"""Ops that look at a tensor, bound it, add several, or show its bytes as another type."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from run_op import run_op
from weft import dtypes
from weft.errors import InvalidArgument
from weft.metadata import RULES
from weft.tensor import info

INF, NAN = np.inf, np.nan
fast = settings(max_examples=60)


def run(op, *inputs, **attrs):
    arrays = [np.asarray(x) for x in inputs]
    return run_op(op, arrays, {"T": dtypes.of_numpy(arrays[0].dtype)} | attrs)[0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(("x", "found"), [([1, NAN], "NaN"), ([INF, -INF], "Inf"), ([NAN, -INF], "Inf and NaN")])
def test_numbers_that_are_none_are_told_with_the_message(dtype, x, found):
    with pytest.raises(InvalidArgument, match=f"^late : Tensor had {found} values"):
        run("CheckNumerics", np.array(x, dtype), message="late")


def test_an_expected_shape_adds_to_what_is_known():
    def expect(shape, x):
        return RULES["EnsureShape"].function({"shape": shape}, info(dtypes.float32, x)).shape

    assert expect((None, 3), (2, None)) == (2, 3)
    assert expect(None, (2, None)) == (2, None)
    assert expect((2,), None) == (2,)
    with pytest.raises(InvalidArgument, match="expected shape"):
        expect((None, 3), (2,))


@fast
@given(hnp.arrays(np.int64, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)),
       st.sampled_from(["uint8", "int16", "float32", "complex64", "float64", "complex128"]))
def test_bytes_shown_as_another_type_and_back_are_the_same(x, name):
    other = dtypes.named(name)
    if other.itemsize > 8:
        x = np.stack([x, x], -1)
    there = run("Bitcast", x, type=other)
    assert there.tobytes() == x.tobytes()
    np.testing.assert_array_equal(run("Bitcast", there, type=dtypes.int64), x)


def test_only_a_last_dimension_that_fits_becomes_one_element():
    with pytest.raises(InvalidArgument, match="last dimension must be 4"):
        run("Bitcast", np.zeros((2, 3), np.uint8), type=dtypes.uint32)
    with pytest.raises(InvalidArgument, match="last dimension"):
        run("Bitcast", np.int32(1), type=dtypes.int64)
    assert RULES["Bitcast"].function({"type": dtypes.int64}, info(dtypes.int32, (5, None))).shape == (5,)
    assert RULES["Bitcast"].function({"type": dtypes.int64}, info(dtypes.int32, None)).shape is None


def test_a_deep_copy_is_another_array():
    x = np.array([b"a", b"b"], object)
    got = run("DeepCopy", x)
    assert got is not x
    assert got.tolist() == [b"a", b"b"]


def test_the_lower_bound_wins_and_nan_bounds_nothing():
    x = np.float32([NAN, INF, -INF, 0, 5, 2])

    def clip(low, high):
        return run("ClipByValue", x, np.float32(low), np.float32(high)).tolist()

    np.testing.assert_array_equal(clip(1, 3), [NAN, 3, 1, 1, 3, 2])
    np.testing.assert_array_equal(clip(3, 1), [NAN, 3, 3, 3, 3, 3])
    np.testing.assert_array_equal(clip(NAN, 1), [NAN, 1, -INF, 0, 1, 1])
    np.testing.assert_array_equal(clip(1, NAN), [NAN, INF, 1, 1, 5, 2])


def test_each_part_of_a_complex_number_is_bounded():
    got = run("ClipByValue", np.complex64([1 + 2j, 5, -3j]), np.complex64(1 - 1j), np.complex64(3 + 1j))
    assert got.tolist() == [1 + 1j, 3, 1 - 1j]


def test_bounds_are_scalars_or_of_the_shape_of_what_they_bound():
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run("ClipByValue", x, np.float32(2), x * 3), x * 2)
    with pytest.raises(InvalidArgument, match="clip_value_max"):
        run("ClipByValue", x, np.float32(0), np.ones(3, np.float32))


def test_a_difference_of_the_tolerance_is_approximately_equal():
    x, y = np.float32([1, 2, 3, INF]), np.float32([2, 2, 4.5, INF])
    assert run("ApproximateEqual", x, y, tolerance=1.0).tolist() == [True, True, False, False]
    assert run("ApproximateEqual", x, y, tolerance=0.0).tolist() == [False, True, False, False]
    with pytest.raises(InvalidArgument, match="same shape"):
        run("ApproximateEqual", x, np.float32(1), tolerance=1.0)


@fast
@given(st.integers(1, 5), st.data())
def test_several_tensors_are_added_up(count, data):
    terms = data.draw(st.lists(hnp.arrays(np.int16, (2, 3)), min_size=count, max_size=count))
    for op, attrs in (("AddN", {}), ("AccumulateNV2", {"shape": (2, 3)})):
        np.testing.assert_array_equal(run(op, *terms, N=count, **attrs), np.sum(terms, 0, dtype=np.int16))


def test_terms_of_different_shapes_are_not_added():
    with pytest.raises(InvalidArgument, match="same shape"):
        run("AddN", np.ones((2, 3)), np.ones(3), N=2)
    assert RULES["AddN"].function({}, info(dtypes.int32, (2, None)), info(dtypes.int32, (None, 3))).shape == (2, 3)
