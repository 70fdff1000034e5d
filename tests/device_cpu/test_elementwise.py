"""Elementwise ops: TensorFlow's semantics, and the inference of their outputs."""

from itertools import zip_longest

import ml_dtypes
import numpy as np
import pytest
from harness.run_op import REGISTRIES, run_op
from heald.api import geometry
from heald.errors import InvalidArgument
from heald.runtime.contract.kernel import Bind
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo, constant_info, info
from heald_cpu.device import Cpu
from heald_cpu.kernels import activations, arithmetic, gradients
from heald_cpu.kernels.elementwise import IN_STEPS, LOGICAL, SAME_TYPE, UPPER_BOUND
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

INF, NAN = np.inf, np.nan
fast = settings(max_examples=60)


def run(op, *inputs, **attrs):
    arrays = [np.asarray(x) for x in inputs]
    types = {"T": dtypes.of_numpy(arrays[0].dtype)} if "T" in REGISTRIES.ops.get(op).attrs else {}
    return run_op(op, arrays, types | attrs)[0]


def cast(x, target, truncate=False):
    target = dtypes.named(target)
    attrs = {"SrcT": dtypes.of_numpy(x.dtype), "DstT": target, "Truncate": truncate}
    return run_op("Cast", [x], attrs)[0]


def same(got, want):
    assert got.dtype == want.dtype
    exact = np.float64 if got.dtype == ml_dtypes.bfloat16 else got.dtype  # NumPy's test knows no NaN there
    np.testing.assert_array_equal(got.astype(exact), want.astype(exact))


# Semantics


@pytest.mark.parametrize(("op", "x", "y", "want"), [
    ("AddV2", 127, 1, -128), ("Sub", -128, 1, 127), ("Mul", 64, 2, -128),
])
def test_integers_wrap_around(op, x, y, want):
    same(run(op, np.int8([x]), np.int8([y])), np.int8([want]))


def test_the_least_integer_has_no_positive_counterpart():
    least = np.int32([-(2**31)])
    same(run("Abs", least), least)
    same(run("Neg", least), least)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_nan_passes_through_bounds_and_extremes(dtype):
    x, y = np.array([NAN, 1, NAN, 9], dtype), np.array([1, NAN, NAN, -9], dtype)
    same(run("Maximum", x, y), np.array([NAN, NAN, NAN, 9], dtype))
    same(run("Minimum", x, y), np.array([NAN, NAN, NAN, -9], dtype))
    same(run("Relu", y), np.array([1, NAN, NAN, 0], dtype))
    same(run("Relu6", x), np.array([NAN, 1, NAN, 6], dtype))


def test_relu_keeps_what_is_large():
    same(run("Relu", np.float32([INF, -INF, 3e38])), np.float32([INF, 0, 3e38]))
    same(run("Relu", np.uint8([0, 255])), np.uint8([0, 255]))


def test_real_division_by_zero_is_infinite():
    same(run("RealDiv", np.float32([1, -1, 0]), np.float32([0, 0, 0])), np.float32([INF, -INF, NAN]))


def test_sigmoid_is_accurate_far_from_zero():
    got = run("Sigmoid", np.float32([-1000, -20, 0, 20, 1000, NAN]))
    np.testing.assert_allclose(got, [0, np.exp(-20.0), 0.5, 1, 1, NAN], rtol=1e-6)
    np.testing.assert_allclose(run("Sigmoid", np.complex64([-1000 + 2j, 1000 + 1j])), [0, 1])


def test_rsqrt_of_zero_keeps_its_sign():
    same(run("Rsqrt", np.float32([4, 0.0, -0.0, -1, INF])), np.float32([0.5, INF, -INF, NAN, 0]))


def test_squared_difference_of_complex_numbers_is_real():
    same(run("SquaredDifference", np.complex64([1 + 2j]), np.complex64([0])), np.complex64([5]))


def test_strings_are_joined_and_compared():
    x, y = np.array([b"a", b"\0"], object), np.array([b"a"], object)
    assert run("Add", x, y).tolist() == [b"aa", b"\0a"]
    same(run("Equal", x, y), np.array([True, False]))
    same(run("NotEqual", x, y), np.array([False, True]))


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InvalidArgument, match=r"Incompatible shapes: \[2,3\] vs. \[3,2\]"):
        run("AddV2", np.ones((2, 3)), np.ones((3, 2)))


@pytest.mark.parametrize(("op", "want"), [("Equal", False), ("NotEqual", True)])
def test_tensors_whose_shapes_do_not_fit_are_unequal_as_a_whole_on_request(op, want):
    got = run(op, np.ones(2), np.ones(3), incompatible_shape_error=False)
    same(got, np.array(want))


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


def test_terms_of_different_shapes_are_not_added():
    with pytest.raises(InvalidArgument, match="same shape"):
        run("AddN", np.ones((2, 3)), np.ones(3), N=2)
    assert RULES["AddN"].function({}, info(dtypes.int32, (2, None)), info(dtypes.int32, (None, 3))).shape == (2, 3)


# Casts


@pytest.mark.parametrize(("source", "target", "x", "want"), [
    ("float32", "int32", [1.9, -1.9, 3e9, -INF, NAN], [1, -1, -(2**31), -(2**31), -(2**31)]),
    ("float32", "int8", [300, -129], [44, 127]),
    ("float32", "uint32", [-1, 2**32, 1e30], [2**32 - 1, 0, 0]),
    ("float32", "uint64", [2.0**63, 2.0**64, NAN], [2**63, 2**63, 2**63]),
    ("float64", "bool", [0, -0.0, 0.1, NAN], [False, False, True, True]),
    ("complex64", "float32", [1 + 2j], [1]),
    ("complex64", "uint32", [-1 + 2j], [2**32 - 1]),
    ("int32", "int8", [128, -129], [-128, 127]),
    ("int32", "float16", [2049, 70000], [2048, INF]),
    ("float32", "float8_e5m2", [1.1], [1.0]),
    ("float8_e5m2", "uint32", [INF, 3], [0, 3]),
    ("int4", "uint4", [-1], [15]),
])
def test_casts(source, target, x, want):
    array = np.array(x, dtypes.named(source).numpy)
    same(cast(array, target), np.array(want, dtypes.named(target).numpy))
    one = array[:1].reshape(())
    same(cast(one, target), np.array(want[0], dtypes.named(target).numpy))


@pytest.mark.parametrize(("target", "below_two"), [("bfloat16", 1.9921875), ("float16", 1.9990234375)])
def test_truncating_casts_round_toward_zero_and_keep_nan(target, below_two):
    dtype = dtypes.named(target).numpy
    x = np.float32([1.999999, -1.999999, NAN, INF])
    same(cast(x, target, truncate=True), np.array([below_two, -below_two, NAN, INF], dtype))
    same(cast(x, target), np.array([2, -2, NAN, INF], dtype))


# Laws


@fast
@given(st.data())
def test_broadcasting_is_numpys(data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
    x, y = (data.draw(hnp.arrays(np.int16, shape)) for shape in shapes.input_shapes)
    same(run("Mul", x, y), np.asarray(x * y))
    same(run("Less", x, y), np.asarray(x < y))


@fast
@given(st.data())
def test_an_inference_from_partly_unknown_shapes_holds(data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3))
    hidden = [tuple(data.draw(st.sampled_from([length, None])) for length in s) for s in shapes.input_shapes]
    inferred = geometry.broadcast_shapes(*hidden)
    assert len(inferred) == len(shapes.result_shape)
    assert all(i in (None, r) for i, r in zip(inferred, shapes.result_shape, strict=True))


@fast
@given(*[hnp.array_shapes(min_dims=0, max_dims=3, max_side=3)] * 2)
def test_shapes_fit_when_numpy_broadcasts_them(a, b):
    pairs = zip_longest(reversed(a), reversed(b), fillvalue=1)
    assert geometry.shapes_fit(a, b) == all(x == y or 1 in (x, y) for x, y in pairs)


@fast
@given(st.integers(1, 5), st.data())
def test_several_tensors_are_added_up(count, data):
    terms = data.draw(st.lists(hnp.arrays(np.int16, (2, 3)), min_size=count, max_size=count))
    for op, attrs in (("AddN", {}), ("AccumulateNV2", {"shape": (2, 3)})):
        np.testing.assert_array_equal(run(op, *terms, N=count, **attrs), np.sum(terms, 0, dtype=np.int16))


TABLES = (SAME_TYPE, IN_STEPS, arithmetic.OF_FLOATS, arithmetic.ZERO_DECIDES)
IN_PLACE = {row[0] for table in TABLES for row in table} | {
    *LOGICAL, *UPPER_BOUND, *activations.IN_STEPS, *gradients.OF_INTEGERS_TOO, *gradients.OF_ACTIVATIONS,
    *gradients.BY_OUTPUT, *gradients.BY_CONJUGATE, "AddN", "Erf", "Erfc", "LogSoftmax", "Softmax",
}


@pytest.mark.parametrize("op", sorted(IN_PLACE))
def test_the_output_may_be_written_over_the_input(op):
    spec = REGISTRIES.ops.get(op)
    dtype = dtypes.float32 if "T" in spec.attrs else dtypes.bool_
    attrs, meta = {"T": dtype}, TensorMetadata(dtype, (2, 2))
    x, y = np.array([[0.5, 0], [7, 3]]).astype(dtype.numpy), np.array([[2, 5], [0, 1]]).astype(dtype.numpy)
    inputs = [x, y][: len(spec.inputs)]
    attrs |= {"N": 1} if op == "AddN" else {}
    want = run_op(op, inputs, attrs)[0]
    kernel = next(k for k in REGISTRIES.kernels.candidates(op, "CPU") if k.refuses(attrs) is None)
    bound = kernel.bind(Bind("node", op, attrs, (ValueInfo(meta),) * len(inputs), (meta,), Cpu(0), None, {}))
    with np.errstate(all="ignore"):
        bound(*inputs, inputs[kernel.inplace[0]])
    same(inputs[kernel.inplace[0]], want)


# Metadata


@pytest.mark.parametrize(("a", "b", "want"), [
    ((5,), (None,), (5,)), ((1,), (None,), (None,)), ((0,), (None,), (None,)), ((None,), (None,), (None,)),
    ((None, 3), (4, 1, 1), (4, None, 3)), (None, (3,), None), ((), (2,), (2,)), ((0,), (1,), (0,)),
])
def test_broadcasting_of_unknown_lengths_is_tensorflows(a, b, want):
    assert geometry.broadcast_shapes(a, b) == want
    assert geometry.broadcast_shapes(b, a) == want


def test_an_unknown_length_leaves_the_rank_of_a_lenient_equality_open():
    def shape(a, b):
        x, y = info(dtypes.float32, a), info(dtypes.float32, b)
        return RULES["Equal"].function({"incompatible_shape_error": False}, x, y).shape

    assert shape((5,), (None,)) is None
    assert shape((1,), (None,)) == (None,)
    assert shape((2, None), (3, None)) == ()


def test_known_elements_of_small_integers_are_computed():
    x, y = constant_info(np.int8([100, 3])), constant_info(np.int8(2))
    same(RULES["Mul"].function({}, x, y).value, np.int8([-56, 6]))
    same(RULES["Cast"].function({"DstT": dtypes.int64}, x).value, np.int64([100, 3]))
    huge = constant_info(np.uint64([2**64 - 1]))
    same(RULES["Cast"].function({"DstT": dtypes.uint64}, huge).value, huge.value)
    same(RULES["Cast"].function({"DstT": dtypes.int8}, huge).value, np.int8([-1]))
    assert RULES["Mul"].function({}, constant_info(np.float32(1)), constant_info(np.float32(1))).value is None


def test_partly_known_elements_stay_partly_known():
    batch = ValueInfo(TensorMetadata(dtypes.int32, (2,)), dims=(None, 7))
    assert RULES["Mul"].function({}, batch, constant_info(np.int32(4))).dims == (None, 28)
    assert RULES["Cast"].function({"DstT": dtypes.int64}, batch).dims == (None, 7)
    length = ValueInfo(TensorMetadata(dtypes.int32, ()), dims=(6,))
    same(RULES["Sub"].function({}, length, length).value, np.array(0, np.int32))
