"""Blocks of space in batch and depth: ops and their inverses; patches."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument, OutOfRange, Unimplemented
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)


def run(op, *inputs, **attrs):
    return outputs(op, *inputs, **attrs)[0]


@fast
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 2), st.integers(1, 2)), max_size=3))
def test_batch_to_space_undoes_space_to_batch(axes):
    blocks = np.int64([block for block, *_ in axes])
    margins = np.int32([(before, after) for _, before, after, _ in axes]).reshape(-1, 2)
    space = [max(block * (count + 4) - before - after, 0) for block, before, after, count in axes]
    x = np.arange(np.prod([2, *space, 3])).reshape(2, *space, 3)
    batched = run("SpaceToBatchND", x, blocks, margins)
    assert batched.shape[0] == 2 * blocks.prod()
    np.testing.assert_array_equal(run("BatchToSpaceND", batched, blocks, margins), x)


def test_blocks_of_one_size_are_those_of_the_general_op():
    x, none = np.arange(32).reshape(1, 4, 4, 2), np.zeros((2, 2), np.int32)
    batched = run("SpaceToBatch", x, none, block_size=2)
    np.testing.assert_array_equal(batched, run("SpaceToBatchND", x, np.int32([2, 2]), none))
    np.testing.assert_array_equal(run("BatchToSpace", batched, none, block_size=2), x)


def test_depth_is_a_block_row_by_row():
    x = np.arange(16).reshape(1, 2, 4, 2)
    deep = run("SpaceToDepth", x, block_size=2)
    np.testing.assert_array_equal(deep[0, 0, 0], x[0, :2, :2].reshape(-1))
    np.testing.assert_array_equal(run("DepthToSpace", deep, block_size=2), x)
    texts = np.array([b"a", b"b", b"c", b"d"], object).reshape(1, 2, 2, 1)
    assert run("SpaceToDepth", texts, block_size=2).reshape(-1).tolist() == [b"a", b"b", b"c", b"d"]


def patches(x, taps, stride=1, rate=1, padding="VALID"):
    sizes = {name: (1, n, n, 1) for name, n in (("ksizes", taps), ("strides", stride), ("rates", rate))}
    return run("ExtractImagePatches", x, **sizes, padding=padding)


def test_patches_are_windows_with_zeros_around():
    x = np.arange(1, 17).reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(patches(x, 2, stride=2)[0, 1, 0], [9, 10, 13, 14])
    np.testing.assert_array_equal(patches(x, 2, rate=2)[0, 1, 1], [6, 8, 14, 16])
    np.testing.assert_array_equal(patches(x, 3, padding="SAME")[0, 0, 0], [0, 0, 0, 0, 1, 2, 0, 5, 6])
    assert patches(x, 5).shape == (1, 0, 0, 25)


def test_a_block_shape_that_does_not_fit_is_refused():
    x, none = np.zeros((2, 3, 4, 5)), np.zeros((2, 2), np.int32)
    for op, *inputs in (
        ("SpaceToBatchND", x, np.int32([2, 2]), none), ("SpaceToBatchND", x, np.int32([0, 1]), none),
        ("SpaceToBatchND", x, np.int32([1, 1]), none - 1), ("SpaceToBatchND", x[0, 0, 0], np.int32([1, 1]), none),
        ("BatchToSpaceND", x, np.int32([3, 1]), none), ("BatchToSpaceND", x, np.int32([1, 1]), none + 2),
    ):
        with pytest.raises(InvalidArgument):
            run(op, *inputs)
    for op in ("SpaceToDepth", "DepthToSpace"):
        with pytest.raises(InvalidArgument):
            run(op, x, block_size=2)
    with pytest.raises(InvalidArgument, match="negative"):
        patches(x, 6)
    with pytest.raises(OutOfRange):
        patches(x, 0)
    with pytest.raises(Unimplemented):
        run("ExtractImagePatches", x, ksizes=(1, 1, 1, 2), strides=(1,) * 4, rates=(1,) * 4, padding="SAME")


def test_unknown_lengths_stay_unknown_in_every_layout():
    def shape(layout, *dims):
        attrs = {"block_size": 2, "data_format": layout}
        return RULES["SpaceToDepth"].function(attrs, info(dtypes.float32, dims)).shape

    assert shape("NHWC", None, 4, None, 3) == (None, 2, None, 12)
    assert shape("NCHW", 1, None, 4, 6) == (1, None, 2, 3)
    assert shape("NCHW_VECT_C", 1, 2, 4, 6, 4) == (1, 8, 2, 3, 4)
