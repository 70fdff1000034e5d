"""Reads and writes by an index tensor, against NumPy's fancy indexing, and TensorFlow's differences."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
NAN = np.nan


def run(op, *inputs, **attrs):
    return outputs(op, *inputs, **attrs)[0]


@st.composite
def places(draw):
    """A tensor, and vectors that name elements or slices of it; every slice once at most."""
    x = draw(hnp.arrays(np.int64, hnp.array_shapes(max_dims=4, max_side=3)))
    depth = draw(st.integers(1, x.ndim))
    rows = draw(st.lists(st.integers(0, np.prod(x.shape[:depth]) - 1), unique=True, min_size=1))
    return x, np.stack(np.unravel_index(rows, x.shape[:depth]), -1)


@fast
@given(places())
def test_scattered_elements_are_gathered_again(drawn):
    x, indices = drawn
    index = tuple(indices.T)
    picked = run("GatherNd", x, indices)
    np.testing.assert_array_equal(picked, x[index])
    alone = run("ScatterNd", indices, picked, np.array(x.shape))
    np.testing.assert_array_equal(run("GatherNd", alone, indices), picked)
    np.testing.assert_array_equal(run("TensorScatterSub", x, indices, picked), x - alone)
    np.testing.assert_array_equal(run("TensorScatterUpdate", np.zeros_like(x), indices, picked), alone)


@fast
@given(hnp.arrays(np.int32, st.integers(0, 8), elements=st.integers(0, 3)))
def test_stitching_undoes_a_partition(partitions):
    x = np.arange(partitions.size * 2.0).reshape(-1, 2)
    data = outputs("DynamicPartition", x, partitions, num_partitions=4)
    indices = outputs("DynamicPartition", np.arange(partitions.size, dtype=np.int32), partitions, num_partitions=4)
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        np.testing.assert_array_equal(run(op, *indices, *data), x)


def test_updates_of_one_place_add_up_wrap_around_or_the_last_stays():
    x, twice = np.uint8([250, 1]), np.int32([[0], [0]])
    updates = np.uint8([3, 4])
    assert run("TensorScatterAdd", x, twice, updates).tolist() == [1, 1]
    assert run("TensorScatterUpdate", x, twice, updates).tolist() == [4, 1]
    assert run("TensorScatterMin", x, twice, updates).tolist() == [3, 1]
    texts = run("ScatterNd", twice, np.array([b"a", b"b"], object), np.int32([2]))
    assert texts.tolist() == [b"ab", b""]


def test_a_maximum_keeps_nan_that_is_there_and_passes_over_nan_that_comes():
    got = run("TensorScatterMax", np.float32([NAN, 1]), np.int32([[0], [1]]), np.float32([5, NAN]))
    np.testing.assert_array_equal(got, [NAN, 1])


def test_bad_indices_are_refused_or_skipped():
    x, indices = np.float32([1, 2]), np.int32([[1], [7]])
    with pytest.raises(InvalidArgument, match=r"indices\[1\] = \[7\] does not index into shape \[2\]"):
        run("GatherNd", x, indices)
    assert run("GatherNd", x, indices, bad_indices_policy="IGNORE").tolist() == [2, 0]
    added = run("TensorScatterAdd", x, indices, np.float32([10, 20]), bad_indices_policy="IGNORE")
    assert added.tolist() == [1, 12]


def test_rows_of_inplace_ops_wrap_around():
    x, rows = np.int32([[1], [2], [3]]), np.int32([-1, 3])
    assert run("InplaceUpdate", x, rows, np.int32([[8], [9]])).tolist() == [[9], [2], [8]]
    assert run("InplaceSub", x, rows, np.int32([[1], [1]])).tolist() == [[0], [2], [2]]


def test_places_that_nothing_is_stitched_into_are_zero():
    assert run("DynamicStitch", np.int32([2]), np.float32([5])).tolist() == [0, 0, 5]
    assert run("DynamicStitch", np.int32([1]), np.array([b"a"], object)).tolist() == [b"", b"a"]
    assert run("DynamicStitch", np.zeros(0, np.int32), np.zeros((0, 3))).shape == (0, 3)


x34 = np.zeros((3, 4), np.float32)


@pytest.mark.parametrize(("op", "inputs", "attrs"), [
    ("GatherNd", [x34, np.int32([[-1]])], {}), ("GatherNd", [x34, np.int32([[0, 0, 0]])], {}),
    ("GatherNd", [x34[:0], np.int32([[0]])], {}), ("GatherNd", [x34, np.int32([[0]])], {"bad_indices_policy": "no"}),
    ("ScatterNd", [np.int32([[0]]), x34[:1], np.int32([3, 5])], {}),
    ("ScatterNd", [np.int32([0]), np.float32([1]), np.int32([3])], {}),
    ("ScatterNd", [np.int32([[0]]), np.float32([1]), np.int32([0])], {}),
    ("TensorScatterAdd", [x34, np.int32([[3]]), x34[:1]], {}),
    ("TensorScatterAdd", [x34, np.int32([[0]]), x34[:2]], {}),
    ("InplaceAdd", [x34, np.int32([0, 1]), x34[:1]], {}), ("InplaceAdd", [x34, np.int32(0), x34[0]], {}),
    ("DynamicPartition", [x34, np.int32([0, 0, -1])], {"num_partitions": 2}),
    ("DynamicPartition", [x34, np.int32([0, 0])], {"num_partitions": 2}),
    ("DynamicStitch", [np.int32([-1, 0]), np.float32([1, 2])], {}),
    ("DynamicStitch", [np.int32([0, 1]), np.float32([1])], {}),
])
def test_an_index_that_does_not_fit_is_refused(op, inputs, attrs):
    with pytest.raises(InvalidArgument):
        run(op, *inputs, **attrs)


def test_an_index_too_large_for_memory_is_told_as_such():
    with pytest.raises(MemoryError):
        run("DynamicStitch", np.int32([2**31 - 1]), np.broadcast_to(np.float64(0), (1, 2**24)))
