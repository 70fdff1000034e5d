"""Tensors as sets: distinct elements and slices, differences, unions."""

import ml_dtypes
import numpy as np
import pytest
from harness.call_op import call, same
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

NAN = np.nan
fast = settings(max_examples=60)
vectors = st.lists(st.integers(0, 4), max_size=9)


@fast
@given(vectors, st.sampled_from([np.int8, np.float16, ml_dtypes.bfloat16, object]))
def test_distinct_elements_come_in_the_order_of_their_first_occurrence(elements, dtype):
    x = np.array([b"%d" % e for e in elements] + [None], object)[:-1] if dtype is object else np.array(elements, dtype)
    y, idx, count = call("UniqueWithCounts", x, out_idx=dtypes.int64)
    same(y, np.array([*dict.fromkeys(x.tolist()), None], object)[:-1].astype(x.dtype))
    same(y[idx], x)
    same(count, np.array([x.tolist().count(e) for e in y.tolist()], np.int64))


@fast
@given(st.lists(st.sampled_from([0, 1, 7, 120, 2**31, 2**63 - 1, 2**63, 2**64 - 1]), max_size=9))
def test_integers_far_apart_and_near_are_told_apart(elements):
    for dtype in (np.uint64, np.int64, np.int8, np.uint8):
        x = np.array(elements, np.uint64).astype(dtype)
        y, idx = call("Unique", x)
        assert y.tolist() == [*dict.fromkeys(x.tolist())]
        same(y[idx], x)


@fast
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), max_size=6))
def test_distinct_rows_are_the_columns_of_the_transpose(rows):
    x = np.array(rows, np.int32).reshape(len(rows), 2)
    y, idx = call("UniqueV2", x, np.int64([0]))
    same(y[idx], x)
    assert len(y) == len(set(rows))
    same(call("UniqueV2", x.T, np.int64([-1])), y.T, idx)


def test_nan_is_distinct_each_time_and_zeros_are_one():
    for dtype in (np.float32, ml_dtypes.bfloat16):
        y, idx = call("Unique", np.array([NAN, 0.0, NAN, -0.0, 1], dtype))
        assert len(y) == 4
        assert idx.tolist() == [0, 1, 2, 1, 3]
        assert call("ListDiff", np.array([NAN, 1], dtype), np.array([1, NAN], dtype))[1].tolist() == [0]


@fast
@given(vectors, vectors)
def test_a_list_difference_keeps_order_and_repetition(x, y):
    out, idx = call("ListDiff", np.int32(x), np.int32(y))
    same(out, np.int32([e for e in x if e not in y]))
    same(np.int32(x)[idx], out)


OPERATIONS = {"a-b": set.__sub__, "b-a": set.__rsub__, "intersection": set.__and__, "union": set.__or__}


@fast
@given(st.lists(st.tuples(vectors, vectors), min_size=1, max_size=3), st.sampled_from(sorted(OPERATIONS)))
def test_set_operations_are_those_of_each_pair_of_rows(pairs, operation):
    def pad_rows(rows):
        """Rows are filled up with copies of a value that every row has."""
        return np.int64([[*row, *[9] * (10 - len(row))] for row in rows])

    a, b = (pad_rows(side) for side in zip(*pairs, strict=True))
    want = [sorted(OPERATIONS[operation](set(x), set(y))) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    indices, values, shape = call("DenseToDenseSetOperation", a, b, set_operation=operation)
    assert [values[indices[:, 0] == i].tolist() for i in range(len(pairs))] == want
    assert indices[:, 1].tolist() == [i for row in want for i in range(len(row))]
    assert shape.tolist() == [len(pairs), max(map(len, want))]


def test_sets_of_text_have_their_order():
    a, b = np.array([[b"b", b"a"]], object), np.array([[b"b", b"c"]], object)
    same(call("DenseToDenseSetOperation", a, b, set_operation="union")[1], np.array([b"a", b"b", b"c"], object))


def test_a_tensor_that_is_no_set_is_refused():
    x = np.ones((2, 2), np.int32)
    for axis, reason in (([2], "axis 2"), ([0, 1], "0 or 1 elements"), ([], "rank 1")):
        with pytest.raises(InvalidArgument, match=reason):
            call("UniqueV2", x, np.int64(axis))
    for other, operation, reason in ((x[:1], "union", "same first"), (x, "xor", "one of"), (x[0], "union", "rank 2")):
        with pytest.raises(InvalidArgument, match=reason):
            call("DenseToDenseSetOperation", x, other, set_operation=operation)


def test_only_the_rank_of_distinct_slices_is_known_without_the_axis():
    x, axis = info(dtypes.float32, (2, 3)), info(dtypes.int64, (1,))
    unique = RULES["UniqueV2"].function
    assert [o.shape for o in unique({"out_idx": dtypes.int32}, x, axis)] == [(None, None), (None,)]


groups_of_sets = st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=2, max_size=2)


def sparse_sets(groups):
    indices = [[i, j] for i, group in enumerate(groups) for j in range(len(group))]
    values = np.array([v for group in groups for v in group], np.int64)
    return np.array(indices, np.int64).reshape(-1, 2), values, np.int64([len(groups), 4])


@pytest.mark.parametrize(("operation", "function"), [
    ("a-b", set.difference), ("b-a", lambda a, b: b - a), ("intersection", set.intersection), ("union", set.union),
])
@fast
@given(groups_of_sets, groups_of_sets)
def test_operations_on_sparse_sets_are_pythons(operation, function, first, second):
    expected = [sorted(function(set(a), set(b))) for a, b in zip(first, second, strict=True)]
    indices, values, shape = call("SparseToSparseSetOperation", *sparse_sets(first), *sparse_sets(second),
                                  set_operation=operation)
    assert values.tolist() == [v for group in expected for v in group]
    assert indices.tolist() == [[i, j] for i, group in enumerate(expected) for j in range(len(group))]
    assert shape.tolist() == [2, max(map(len, expected))]
    sizes = call("SetSize", indices, values, shape)
    assert sizes.tolist() == [len(group) for group in expected]


@fast
@given(groups_of_sets)
def test_dense_sets_are_sparse_sets_without_gaps(second):
    dense = np.int64([[1, 2], [3, 3]])
    by_dense = call("DenseToSparseSetOperation", dense, *sparse_sets(second), set_operation="union")
    first = np.int64([[0, 0], [0, 1], [1, 0], [1, 1]]), dense.reshape(-1), np.int64([2, 2])
    by_sparse = call("SparseToSparseSetOperation", *first, *sparse_sets(second), set_operation="union")
    same(by_dense, *by_sparse)


def test_groups_are_counted_before_their_sizes_are_made():
    with pytest.raises(InvalidArgument, match="shape"):
        call("SetSize", np.zeros((0, 4), np.int64), np.int64([]), np.int64([2**40, 2**40, 2**40, 1]))
    shape = np.int64([2**40, 3])
    indices, _, lengths = call("SparseToSparseSetOperation", np.int64([[2**39, 0]]), np.int64([7]), shape,
                               np.int64([[5, 0]]), np.int64([8]), shape, set_operation="union")
    assert indices.tolist() == [[5, 0], [2**39, 0]]
    assert lengths.tolist() == [2**40, 1]
