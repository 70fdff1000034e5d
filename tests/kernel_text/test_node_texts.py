"""The plans of nodes on a device give what the CPU's kernels give, by the text for CPUs and by that for GPUs."""

import ml_dtypes
import numpy as np
import pytest
from harness.kernel_text_nodes import assert_near, check, node, numbers, on_device
from harness.run_op import run_op
from heald.errors import Unimplemented
from heald.runtime.contract.kernel import Bind, FusedOp
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, info
from heald_cpu.device import Cpu
from heald_kernel_text import (
    CHANNEL,
    FULL,
    FUSIONS,
    NODES,
    OPENCL_CPU,
    OPENCL_GPU,
    Epilogue,
    Literal,
    Step,
    bias,
    matmul,
)
from heald_kernel_text.image_plans import convolution, depthwise
from hypothesis import given, settings
from hypothesis import strategies as st
from workers.run_plan import run_plan

pytestmark = pytest.mark.usefixtures("driver")

F = dtypes.float32
FLOATS = [np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)]
REAL = [*FLOATS, *map(np.dtype, (np.int32, np.int64, np.int8, np.uint8))]
fast = settings(max_examples=6, deadline=None)  # each compiles a kernel
targets = st.sampled_from([OPENCL_CPU, OPENCL_GPU])
both = pytest.mark.parametrize("target", [OPENCL_CPU, OPENCL_GPU], ids=["cpu", "gpu"])
seeds = st.integers(0, 1000).map(np.random.default_rng)
i32 = np.int32


# Products


@fast
@given(targets, seeds, st.sampled_from([*FLOATS, np.dtype(np.int32), np.dtype(np.int64)]),
       st.tuples(*[st.integers(0, 70)] * 3), st.booleans(), st.booleans())
def test_matrix_products(target, rng, dtype, lengths, turn_a, turn_b):
    m, k, n = lengths
    a = numbers(rng, (k, m) if turn_a else (m, k), dtype)
    b = numbers(rng, (n, k) if turn_b else (k, n), dtype)
    check(target, "MatMul", [a, b], transpose_a=turn_a, transpose_b=turn_b)


@both
@pytest.mark.parametrize(("x", "y"), [((2, 3), (2, 3)), ((), (2,)), ((2, 1), ()), ((1, 2), (1, 1))])
@pytest.mark.parametrize("turns", [(False, False), (True, True)])
def test_batches_of_products(target, x, y, turns):
    rng = np.random.default_rng(0)
    a = numbers(rng, (*x, *((5, 9) if turns[0] else (9, 5))), np.float32)
    b = numbers(rng, (*y, *((34, 5) if turns[1] else (5, 34))), np.float32)
    check(target, "BatchMatMulV2", [a, b], adj_x=turns[0], adj_y=turns[1])


@both
def test_a_product_ends_with_bias_residual_and_activation_in_one_kernel(target):
    rng = np.random.default_rng(0)
    a, b, add, residual = (numbers(rng, s, np.float32) for s in ((10, 6), (6, 40), (40,), (10, 40)))
    steps = (Step("AddV2", (0, 1)), Step("AddV2", (3, 2)), Step("Relu6", (4,)), Step("Mul", (5, Literal(0.5))))
    plan = matmul(target, F, (10, 6), (6, 40), epilogue=Epilogue(steps, ((F, CHANNEL), (F, FULL))))
    (got,) = run_plan(plan, [a, b, add, residual], [(np.float32, (10, 40))])
    assert_near(got, np.clip(a @ b + add + residual, 0, 6) * np.float32(0.5))


# Convolutions


@st.composite
def images(draw, groups=False):
    """Shapes of images and of a filter that fits, and attributes."""
    taps = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dilation = draw(st.integers(1, 2))
    height, width = (draw(st.integers((t - 1) * dilation + 1, 9)) for t in taps)
    stride = draw(st.integers(1, 3))
    depth, group = draw(st.integers(1, 4)), draw(st.integers(1, 2)) if groups else 1
    padding = draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"]))
    explicit = [0, 0, 1, 2, 0, 1, 0, 0] if padding == "EXPLICIT" else []
    attrs = {"strides": (1, stride, stride, 1), "padding": padding, "explicit_paddings": tuple(explicit),
             "dilations": (1, dilation, dilation, 1), "data_format": "NHWC"}
    filters = group * draw(st.sampled_from([1, 3, 33]))
    return (draw(st.integers(1, 2)), height, width, depth * group), (*taps, depth, filters), attrs


@fast
@given(targets, seeds, st.sampled_from(FLOATS), images(groups=True))
def test_convolutions(target, rng, dtype, case):
    shape, kernel, attrs = case
    check(target, "Conv2D", [numbers(rng, shape, dtype), numbers(rng, kernel, dtype)], **attrs)


@fast
@given(targets, seeds, st.sampled_from(FLOATS), images(), st.sampled_from([1, 2]), st.sampled_from([3, 20, 32]))
def test_depthwise_convolutions(target, rng, dtype, case, multiplier, depth):
    shape, kernel, attrs = case
    check(target, "DepthwiseConv2dNative",
          [numbers(rng, (*shape[:3], depth), dtype), numbers(rng, (*kernel[:2], depth, multiplier), dtype)], **attrs)


@both
def test_padding_is_zero_beside_nan_and_infinity(target):
    x = np.float32([[np.nan, 1, np.inf]] * 3).reshape(1, 3, 3, 1)
    w = np.ones((3, 3, 1, 1), np.float32)
    for op in ("Conv2D", "DepthwiseConv2dNative"):
        check(target, op, [x, w], strides=(1, 1, 1, 1), padding="SAME")
        check(target, op, [x[:, :, 1:2], w], strides=(1, 1, 1, 1), padding="SAME")


@both
@pytest.mark.parametrize(("op", "plan", "kernel"), [
    ("Conv2D", convolution, (3, 3, 20, 36)), ("Conv2D", convolution, (1, 1, 20, 36)),
    ("Conv2D", convolution, (3, 3, 10, 36)),  # two groups
    ("DepthwiseConv2dNative", depthwise, (3, 3, 20, 1))])
def test_a_convolution_ends_with_bias_and_swish_in_one_kernel(target, op, plan, kernel):
    rng = np.random.default_rng(0)
    x, w = numbers(rng, (2, 5, 6, 20), np.float32), numbers(rng, kernel, np.float32) / 16
    add = numbers(rng, (36 if op == "Conv2D" else 20,), np.float32)
    attrs = {"T": F, "strides": (1, 1, 1, 1), "padding": "SAME"}
    end = bias(F, Step("Sigmoid", (2,)), Step("Mul", (2, 3)))
    sums = run_op(op, [x, w], attrs)[0]
    (got,) = run_plan(plan(target, node(op, [x, w], attrs), end), [x, w, add], [(sums.dtype, sums.shape)])
    assert_near(got, (sums + add) / (1 + np.exp(-(sums + add))))


# Pooling, normalisation


@fast
@given(targets, seeds, st.sampled_from(REAL), images(), st.sampled_from([3, 16, 33]))
def test_pooling(target, rng, dtype, case, depth):
    shape, kernel, attrs = case
    sizes = {"ksize": (1, *kernel[:2], 1), "strides": attrs["strides"], "data_format": "NHWC",
             "padding": attrs["padding"] if attrs["padding"] != "EXPLICIT" else "SAME"}
    x = numbers(rng, (*shape[:3], depth), dtype)
    check(target, "MaxPool", [x], **sizes)
    if dtype in FLOATS:
        check(target, "AvgPool", [x], **sizes)


@both
def test_nan_and_infinity_in_a_maximum_are_as_on_the_cpu(target):
    x = np.float32([np.nan, -np.inf, np.nan, np.nan, 3, np.nan]).reshape(1, 6, 1, 1)
    check(target, "MaxPool", [x], ksize=(1, 2, 1, 1), strides=(1, 2, 1, 1), padding="VALID")


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_bias_and_batch_normalisation(target, dtype, layout):
    rng = np.random.default_rng(0)
    shape = (2, 3, 4, 5) if layout == "NHWC" else (2, 5, 3, 4)
    x, statistics = numbers(rng, shape, dtype), [numbers(rng, (5,), np.float32) for _ in range(3)]
    variance = rng.random(5).astype(np.float32)
    check(target, "BiasAdd", [x, numbers(rng, (5,), dtype)], data_format=layout)
    check(target, "FusedBatchNormV3", [x, *statistics, variance], U=F, is_training=False, data_format=layout)


# Reductions


@st.composite
def reductions(draw):
    shape = draw(st.lists(st.integers(0, 6) | st.just(37), min_size=0, max_size=4))
    axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    return tuple(shape), np.int32(axes)


@fast
@given(targets, seeds, st.sampled_from(REAL), reductions(), st.sampled_from(["Sum", "Mean", "Max", "Min", "Prod"]))
def test_reductions(target, rng, dtype, case, op):
    shape, axes = case
    x = numbers(rng, shape, dtype)
    if op in ("Sum", "Mean", "Prod") and dtype in FLOATS:  # so that no order of operations rounds
        x = np.where(x > 0, 1, -1).astype(dtype)
    check(target, op, [x, axes], keep_dims=False)


@both
@pytest.mark.parametrize("shape", [(2, 500), (500, 2), (3, 40, 5)])
def test_reductions_of_bools_and_of_many(target, shape):
    rng = np.random.default_rng(0)
    x = rng.random(shape) < 0.01
    for op, function in (("All", np.all), ("Any", np.any)):
        got = run_reduction(target, op, x)
        np.testing.assert_array_equal(got, function(x, 1))
    check(target, "Sum", [numbers(rng, shape, np.float32), i32([0, 1])])
    check(target, "Max", [np.float32([[1, np.nan], [-np.inf, 3]]), i32([1])])


def run_reduction(target, op, x):
    from heald_kernel_text.reduction import reduce

    shape = (x.shape[0], *x.shape[2:])
    return run_plan(reduce(target, op, dtypes.bool_, x.shape, (1,)), [x], [(np.bool_, shape)])[0]


@fast
@given(targets, seeds, st.sampled_from(REAL), st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
def test_places_of_extremes(target, rng, dtype, shape, data):
    x = numbers(rng, tuple(shape), dtype)
    if dtype in FLOATS:
        x[rng.random(shape) < 0.2] = np.nan
    axis = i32(data.draw(st.integers(-len(shape), len(shape) - 1)))
    for op in ("ArgMax", "ArgMin"):
        check(target, op, [x, axis], output_type=dtypes.int32)


@fast
@given(targets, seeds, st.sampled_from(FLOATS), st.sampled_from([(3,), (2, 1), (4, 40), (2, 3, 300)]))
def test_softmax(target, rng, dtype, shape):
    x = numbers(rng, shape, dtype)
    check(target, "Softmax", [x])
    check(target, "LogSoftmax", [x])


# What only moves


@fast
@given(targets, seeds, st.lists(st.integers(0, 5), max_size=4), st.data(),
       st.sampled_from(["float32", "uint8", "float16", "complex64", "bool"]))
def test_moves(target, rng, lengths, data, dtype):
    shape = tuple(lengths)
    x = rng.integers(0, 2, shape).astype(dtype) if dtype == "bool" else rng.integers(0, 99, shape).astype(dtype)
    rank = len(shape)
    check(target, "Transpose", [x, i32(data.draw(st.permutations(range(rank))))])
    check(target, "Tile", [x, i32(data.draw(st.tuples(*[st.integers(0, 3)] * rank)))])
    axis = data.draw(st.integers(0, rank))
    check(target, "Pack", [x, x[...]], axis=axis, N=2)
    begin = [data.draw(st.integers(0, n)) for n in shape]
    size = [data.draw(st.integers(0, n - at)) for n, at in zip(shape, begin, strict=True)]
    check(target, "Slice", [x, i32(begin), i32(size)], Index=dtypes.int32)
    if dtype != "complex64":
        pads = i32([(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in shape]).reshape(rank, 2)
        check(target, "Pad", [x, pads])
        check(target, "PadV2", [x, pads, np.asarray(1, dtype)])


@both
def test_parts_and_joins(target):
    rng = np.random.default_rng(0)
    x, y = numbers(rng, (4, 6, 5), np.float32), numbers(rng, (4, 2, 5), np.float32)
    check(target, "ConcatV2", [x, y, i32(-2)], N=2)
    check(target, "Split", [i32(1), x], num_split=3, T=F)
    check(target, "Unpack", [x], axis=-1, num=5)
    check(target, "MirrorPad", [x, i32([[1, 2], [0, 0], [4, 1]])], mode="REFLECT")
    check(target, "MirrorPad", [x, i32([[1, 2], [6, 0], [4, 1]])], mode="SYMMETRIC")
    for masks in ({}, {"begin_mask": 3, "end_mask": 1}, {"shrink_axis_mask": 1, "new_axis_mask": 2},
                  {"ellipsis_mask": 1}):
        check(target, "StridedSlice", [x, i32([1, 4, 3]), i32([3, 1, 5]), i32([1, -1, 2])], Index=dtypes.int32, **masks)


@both
@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_gathering_and_filling(target, indices):
    rng = np.random.default_rng(0)
    x = numbers(rng, (3, 4, 5), np.float32)
    picks = rng.integers(0, 3, (3, 2)).astype(indices)
    for axis, batch in ((0, 0), (1, 0), (-1, 0), (1, 1), (2, 1), (2, -1)):
        check(target, "GatherV2", [x, picks, i32(axis)], Taxis=dtypes.int32, batch_dims=batch)
    check(target, "Fill", [i32([2, 3]), np.float16(1.5)], T=dtypes.float16)
    check(target, "ZerosLike", [x])
    check(target, "OnesLike", [x.astype(ml_dtypes.bfloat16)])
    for x in (np.zeros((3, 0, 5), np.float32), np.float32(1)):
        check(target, "Shape", [x], out_type=dtypes.named(np.dtype(indices).name))


@both
def test_an_index_out_of_range_gives_zeros(target):
    x, picks = np.float32([1, 2, 3]), np.int32([2, 3, -1, 0])
    (got,) = on_device(target, node("GatherV2", [x, picks, i32(0)], {"Tparams": F, "Tindices": dtypes.int32,
                                                                     "Taxis": dtypes.int32}), [x, picks])
    np.testing.assert_array_equal(got, [3, 0, 0, 1])


# Einsum


@both
@pytest.mark.parametrize("equation", [
    "abc,cde->abde", "aecd,abcd->acbe", "acbe,aecd->abcd", "abcd,cde->abe",  # those of attention
    "ij,jk->ik", "ij,kj->ki", "ab,cd->cbad", "abc,abd->cd", "i,i->", "i,j->ji", "ab,b->a", "...ij,...jk->...ik",
    "abcd,dcbe->eab",
])
def test_einsums_that_are_products(target, equation):
    rng, lengths = np.random.default_rng(0), dict(zip("abcdeijk", (2, 3, 4, 5, 6, 7, 8, 9), strict=True))
    terms = equation.partition("->")[0].replace("...", "ab").split(",")
    x, y = (numbers(rng, tuple(lengths[label] for label in term), np.float32) for term in terms)
    check(target, "Einsum", [x, y], equation=equation, N=2)


@both
def test_an_einsum_without_copies_is_one_product(target):
    """A batch of one: every group of labels has a stride."""
    x, y = np.zeros((1, 9, 4, 5), np.float32), np.zeros((1, 8, 4, 5), np.float32)
    plan = NODES["Einsum"].make(target, node("Einsum", [x, y], {"T": F, "equation": "aecd,abcd->acbe", "N": 2}))
    assert {text.name for text in plan.launches} <= {"pack_panels", "Einsum"}


@pytest.mark.parametrize(("equation", "shapes"), [
    ("ii,ij->j", ((3, 3), (3, 4))), ("ab,bc->c", ((2, 3), (3, 4))), ("ab->ba", ((2, 3),)),
    ("ab,ab->ab", ((2, 3), (2, 3))), ("...a,...a->...", ((1, 3), (2, 3)))])
def test_other_einsums_have_no_text(equation, shapes):
    inputs = [np.zeros(shape, np.float32) for shape in shapes]
    b = node("Einsum", inputs, {"T": F, "equation": equation, "N": len(shapes)})
    with pytest.raises(Unimplemented, match="no kernel text"):
        NODES["Einsum"].make(OPENCL_GPU, b)


@both
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 1), (0, 3, 2)])
@pytest.mark.parametrize("axes", [[0], [-1], [1, 2], [0, 1, -1], []])
def test_reversals(target, shape, axes):
    x = numbers(np.random.default_rng(0), shape, np.float32)
    check(target, "ReverseV2", [x, i32(axes)], Tidx=dtypes.int32)


# Recurrent cells


@both
@pytest.mark.parametrize("attrs", [
    {}, {"use_peephole": True, "cell_clip": 0.25}, {"cell_clip": -1.0, "forget_bias": 0.0}])
def test_a_step_of_an_lstm(target, attrs):
    rng = np.random.default_rng(0)
    shapes = [(3, 5), (3, 20), (3, 20), (25, 80), (20,), (20,), (20,), (80,)]
    check(target, "LSTMBlockCell", [numbers(rng, shape, np.float32) for shape in shapes], **attrs)


# Fused nodes


@both
def test_a_batched_product_ends_with_bias_and_residual_in_one_kernel(target):
    """Attributes and operands of each fused op, as the linker gives them."""
    rng = np.random.default_rng(0)
    inputs = [numbers(rng, shape, np.float32) for shape in ((2, 5, 9), (9, 33), (33,), (2, 5, 33))]
    output = TensorMetadata(F, (2, 5, 33))
    fused = (FusedOp("BatchMatMulV2", {"T": F, "adj_x": False, "adj_y": False}, (0, 1), (4,), (output,)),
             FusedOp("AddV2", {"T": F}, (4, 2), (5,), (output,)), FusedOp("AddV2", {"T": F}, (3, 5), (6,), (output,)))
    b = Bind("node", "Product", {}, tuple(info(F, x.shape) for x in inputs), (output,), Cpu(0), None, {}, fused)
    plan = FUSIONS["Product"].make(target, b)
    assert len([text for text in plan.launches if text.name != "pack_panels"]) == 1
    (got,) = run_plan(plan, inputs, [(np.float32, output.dims)])
    assert_near(got, inputs[0] @ inputs[1] + inputs[2] + inputs[3])
