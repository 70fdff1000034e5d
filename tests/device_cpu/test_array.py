"""Ops that move elements: TensorFlow's semantics, and the inference of their outputs."""

import heald
import ml_dtypes
import numpy as np
import pytest
from builders.graphs import graph, placeholder
from harness.run_op import REGISTRIES, attributes, outputs, run_op
from heald.api import geometry
from heald.errors import InvalidArgument, ResourceExhausted
from heald.graphs.graph.graph import Node
from heald.runtime.contract.op import infer
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata, ValueInfo, constant_info, info, merge_shapes
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
x234 = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(op, *inputs, **attrs):
    return outputs(op, *inputs, **attrs)[0]


def inferred_info(op, *infos, **attrs):
    """The metadata function's answer for `infos`."""
    return RULES[op].function(attrs, *infos)


def same(got, want):
    want = np.asarray(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def i32(*values):
    return np.array(values, np.int32)


def vector(*dims):
    return ValueInfo(TensorMetadata(dtypes.int32, (len(dims),)), dims=dims)


def image(*shape):
    return info(dtypes.float32, shape)


TYPES = ("float32", "float16", "bfloat16", "int8", "uint64", "bool", "complex128", "string")


def elements(dtype, shape):
    if dtype == "string":
        return np.array([b"%d" % i for i in range(int(np.prod(shape)))], object).reshape(shape)
    return np.arange(np.prod(shape)).reshape(shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_of_every_type_are_moved(dtype):
    x = elements(dtype, (2, 3))
    same(run("Transpose", x, i32(1, 0)), x.T)
    same(run("Tile", x, i32(2, 1)), np.tile(x, (2, 1)))
    same(run("ConcatV2", x, x, np.int32(-1)), np.concatenate([x, x], -1))
    same(run("Pack", x, x, axis=1), np.stack([x, x], 1))
    same(run("GatherV2", x, i32(1, 1), np.int32(0)), x[[1, 1]])
    same(run("SelectV2", np.array([True, False, True]), x, x[:, :1]), np.where([True, False, True], x, x[:, :1]))
    same(run("MirrorPad", x, i32((1, 0), (0, 2)), mode="REFLECT"), np.pad(x, ((1, 0), (0, 2)), "reflect"))
    same(run("Fill", i32(2, 2), x[1, 1]), np.full((2, 2), x[1, 1], x.dtype))


def test_padding_is_zero_or_empty_text_or_the_value_given():
    same(run("Pad", i32(1, 2), i32((1, 2))), i32(0, 1, 2, 0, 0))
    same(run("Pad", np.array([b"a"], object), i32((1, 0))), np.array([b"", b"a"], object))
    same(run("PadV2", i32(1, 2), i32((1, 0)), np.int32(7)), i32(7, 1, 2))
    with pytest.raises(InvalidArgument, match="non-negative"):
        run("Pad", i32(1, 2), i32((1, -1)))


def test_identity_n_passes_each_input_on():
    got = outputs("IdentityN", x234, i32(1, 2))
    same(got[0], x234)
    same(got[1], i32(1, 2))


def test_reshape_computes_its_one_missing_length():
    assert run("Reshape", x234, i32(4, -1)).shape == (4, 6)
    assert run("Reshape", x234[:0], i32(-1, 0)).shape == (12, 0)
    for target in ((-1, -1), (5, -1), (7,), (-2, 12), (-1, 0)):
        with pytest.raises(InvalidArgument):
            run("Reshape", x234, i32(*target))


def test_reshape_keeps_what_is_known_of_a_shape_under_construction():
    assert inferred_info("Reshape", image(None, None), vector(None, 7, 7, 64)).shape == (None, 7, 7, 64)
    assert inferred_info("Reshape", image(2, 3, 4), vector(None, 6)).shape == (4, 6)
    assert inferred_info("Reshape", image(2, 3, 4), info(dtypes.int32, (3,))).shape == (None, None, None)
    assert inferred_info("Reshape", image(2, 3, 4), info(dtypes.int32, None)).shape is None


def test_a_target_shape_is_known_through_shape_strided_slice_pack_and_reshape():
    """Keras flattens a batch of unknown size in this way."""
    features = image(None, 7, 7, 64)
    shape = inferred_info("Shape", features, out_type=dtypes.int32)
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"), 0)
    at = [constant_info(i32(n)) for n in (0, 1, 1)]
    batch = inferred_info("StridedSlice", shape, *at, **masks, shrink_axis_mask=1)
    assert (batch.shape, batch.dims) == ((), (None,))
    target = inferred_info("Pack", batch, constant_info(np.int32(3136)[None].reshape(())), axis=0)
    assert target.dims == (None, 3136)
    assert inferred_info("Reshape", features, target).shape == (None, 3136)


def test_elements_of_small_integer_tensors_are_known_before_the_run():
    shape = inferred_info("Shape", image(2, 3), out_type=dtypes.int64)
    joined = inferred_info("ConcatV2", shape, constant_info(np.array([5])), constant_info(np.int32(0).reshape(())))
    same(joined.value, np.array([2, 3, 5]))
    same(inferred_info("Rank", image(None, 3)).value, np.int32(2))
    same(inferred_info("Size", image(4, 3), out_type=dtypes.int32).value, np.int32(12))
    picked = inferred_info("GatherV2", shape, constant_info(i32(1)), constant_info(np.array(0, np.int32)), batch_dims=0)
    same(picked.value, np.array([3]))
    bounds = [constant_info(np.array(n, np.int32)) for n in (2, 8, 3)]
    same(inferred_info("Range", *bounds).value, i32(2, 5))


def test_squeeze_drops_lengths_of_one_only():
    assert run("Squeeze", x234.reshape(1, 2, 1, 12), squeeze_dims=(-2,)).shape == (1, 2, 12)
    assert inferred_info("Squeeze", image(None, 1), squeeze_dims=()).shape is None
    assert inferred_info("Squeeze", image(None, 1, 5), squeeze_dims=(0,)).shape == (1, 5)
    with pytest.raises(InvalidArgument, match="expected a dimension of 1"):
        run("Squeeze", x234, squeeze_dims=(1,))


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("ExpandDims", [x234, np.int32(4)], {}), ("Transpose", [x234, i32(0, 0, 1)], {}),
        ("Transpose", [x234, i32(0, 1)], {}), ("ConcatV2", [x234, x234[0], np.int32(0)], {}),
        ("ConcatV2", [np.float32(1), np.float32(1), np.int32(0)], {}), ("Pack", [x234, x234[:1]], {}),
        ("Unpack", [x234], {"num": 3}), ("Split", [np.int32(1), x234], {"num_split": 2}),
        ("Slice", [x234, i32(0, 0, 3), i32(1, 1, 2)], {}), ("GatherV2", [x234, i32(2), np.int32(0)], {}),
        ("GatherV2", [x234, i32(-1), np.int32(0)], {}), ("Range", [np.int32(0), np.int32(5), np.int32(0)], {}),
        ("Range", [np.int32(5), np.int32(0), np.int32(1)], {}), ("Fill", [i32(-1), np.float32(0)], {}),
        ("Tile", [x234, i32(1, 1, -1)], {}), ("MirrorPad", [i32(1, 2), i32((2, 0))], {"mode": "REFLECT"}),
        ("MirrorPad", [i32(1, 2), i32((3, 0))], {"mode": "SYMMETRIC"}),
        ("Select", [np.ones(3, bool), x234, x234], {}),
    ],
)
def test_inputs_that_do_not_fit_are_refused(op, inputs, attrs):
    with pytest.raises(InvalidArgument):
        run(op, *inputs, **attrs)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_gather_of_one_index_is_that_of_several(axis, shape):
    for index in range(x234.shape[axis]):
        indices = np.full(shape, index, np.int32)
        same(run("GatherV2", x234, indices, np.int32(axis)), np.take(x234, indices, axis))
    for index in (-1, x234.shape[axis]):
        with pytest.raises(InvalidArgument, match=rf"= {index} is not in \[0, {x234.shape[axis]}\)"):
            run("GatherV2", x234, np.full(shape, index, np.int32), np.int32(axis))


def test_gather_reads_one_row_of_indices_for_each_batch():
    got = run("GatherV2", x234, np.array([[0, 2], [1, 1]]), np.int32(1), batch_dims=1)
    same(got, np.stack([x234[0][[0, 2]], x234[1][[1, 1]]]))
    assert run("GatherV2", x234[:, :, :0], i32(9), np.int32(1)).shape == (2, 1, 0)


def test_select_takes_rows_by_a_condition_vector():
    same(run("Select", np.array([True, False]), x234, -x234), np.stack([x234[0], -x234[1]]))


def test_split_and_unpack_cut_along_an_axis():
    for got, want in zip(outputs("Split", np.int32(-1), x234, num_split=2), np.split(x234, 2, -1), strict=True):
        same(got, want)
    for got, want in zip(outputs("Unpack", x234, num=3, axis=1), np.moveaxis(x234, 1, 0), strict=True):
        same(got, want)


@fast
@given(st.data(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
def test_a_strided_slice_without_masks_is_numpys(data, shape):
    entry = st.tuples(st.integers(-6, 6), st.integers(-6, 6), st.sampled_from([1, 2, -1, -2]))
    spec = data.draw(st.lists(entry, max_size=len(shape)))
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    begin, end, strides = np.array(spec, np.int32).reshape(-1, 3).T
    got = run("StridedSlice", x, begin.copy(), end.copy(), strides.copy())
    same(got, x[tuple(slice(*entry) for entry in spec)])


def test_an_ellipsis_mask_wins_over_new_axes_and_those_over_shrinking():
    sliced = geometry.strided_slice((4, 5, 6), (0,) * 5, (1,) * 5, (1,) * 5,
                                    ellipsis_mask=4, new_axis_mask=0b1010, shrink_axis_mask=0b11010)
    assert sliced.shape == (1, 1, 5, 1)
    assert sliced.index == (slice(0, 1, 1), None, slice(None), None, 0)
    assert geometry.strided_slice((None, 3), (1, 0), (2, 9), (1, 1), begin_mask=2).shape == (None, 3)
    for bad in ({"ellipsis_mask": 3}, {"shrink_axis_mask": 1, "begin": (9, 0)}, {"strides": (0, 1)}):
        spec = {"begin": (0, 0), "end": (1, 1), "strides": (1, 1)} | bad
        with pytest.raises(InvalidArgument):
            geometry.strided_slice((4, 5, 6), **spec)


@st.composite
def calls(draw):
    """An op with inputs and attributes that fit."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    axis, count = draw(st.integers(-x.ndim, x.ndim - 1)), draw(st.integers(1, 3))
    pads = np.array([[draw(st.integers(0, 2)) for _ in range(2)] for _ in shape], np.int32)
    return draw(st.sampled_from([
        ("Reshape", [x, i32(-1, shape[0])], {}), ("Transpose", [x, i32(*draw(st.permutations(range(x.ndim))))], {}),
        ("Pad", [x, pads], {}), ("ConcatV2", [*[x] * (count + 1), np.array(axis)], {}),
        ("Pack", [x] * count, {"axis": axis}),
        ("Tile", [x, pads[:, 0].copy()], {}), ("GatherV2", [x, i32(0), np.array(axis)], {}), ("Squeeze", [x], {}),
        ("ExpandDims", [x, np.array(axis)], {}), ("Unpack", [x], {"axis": axis, "num": shape[axis]}),
        ("Slice", [x, i32(*[0] * x.ndim), i32(*[-1] * x.ndim)], {}), ("Shape", [x], {}), ("Select", [x > 1, x, -x], {}),
        ("StridedSlice", [x, i32(0), i32(-1), i32(1)], {"shrink_axis_mask": draw(st.integers(0, 1))}),
    ]))


@fast
@given(calls(), st.randoms(use_true_random=False))
def test_an_inference_from_unknown_lengths_is_true_of_the_outputs(call, random):
    op, inputs, attrs = call
    attrs = attributes(op, inputs, attrs)
    actual = run_op(op, inputs, attrs)
    infos = [constant_info(x) for x in inputs]
    for i, x in enumerate(infos):
        if random.random() < 0.5:
            infos[i] = info(x.dtype, tuple(None if random.random() < 0.5 else d for d in x.shape))
    inferred = infer(REGISTRIES.ops.get(op), RULES[op], attrs, infos)
    for guess, truth in zip(inferred, actual, strict=True):
        assert merge_shapes(guess.shape, truth.shape) == truth.shape
        for element, real in zip(guess.vector() or (), truth.flat, strict=False):
            assert element in (None, real)


def test_a_range_beyond_all_memory_is_told_before_it_is_made():
    numbers = [np.int64(n) for n in (0, 2**62, 1)]
    nodes = [placeholder(f"i{i}", (), dtypes.int64) for i in range(3)]
    with pytest.raises(ResourceExhausted) as caught:
        heald.Session(graph(*nodes, Node("r", "Range", ["i0", "i1", "i2"], attrs={"Tidx": dtypes.int64}))).run(
            "r", {f"i{i}": n for i, n in enumerate(numbers)})
    assert caught.value.node == "r"


@pytest.mark.parametrize(("start", "limit", "delta"), [
    (5, 600_000, 3), (7, -200_000, -1), (-(2**31), 2**31 - 1, 2**14)])
def test_a_long_range_of_integers_is_made_piece_by_piece(start, limit, delta):
    (got,) = run_op("Range", [np.array(n, np.int32) for n in (start, limit, delta)], {"Tidx": dtypes.int32})
    np.testing.assert_array_equal(got, np.arange(start, limit, delta, np.int64).astype(np.int32))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [3, 3000])
def test_small_and_large_tensors_are_concatenated_alike(axis, count):
    x = np.arange(2 * count, dtype=np.float32).reshape(2, count)
    empty = x[:, :0] if axis else x[:0]
    same(run("ConcatV2", x, x + 1, empty.copy(), np.int32(axis)), np.concatenate([x, x + 1], axis))
