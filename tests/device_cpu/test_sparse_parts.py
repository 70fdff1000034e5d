"""Sparse tensors that are merged, cut and combined with dense ones, against the dense tensors that they stand for."""

import numpy as np
import pytest
from harness.run_op import outputs
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
shapes = hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)
pairs = shapes.flatmap(lambda shape: st.tuples(*[hnp.arrays(np.int32, shape, elements=st.integers(-2, 2))] * 2))
tensors = shapes.flatmap(lambda shape: hnp.arrays(np.int32, shape, elements=st.integers(0, 2)))


def sparse(x):
    return np.argwhere(x), x[x != 0], np.array(x.shape, np.int64)


def dense(indices, values, shape):
    out = np.zeros(shape, values.dtype)
    for index, value in zip(indices.tolist(), values, strict=True):
        out[tuple(index)] = value
    return out


@fast
@given(pairs)
def test_a_sum_is_that_of_the_dense_tensors(pair):
    a, b = pair
    indices, values, shape = outputs("SparseAdd", *sparse(a), *sparse(b), np.int32(1), Treal=dtypes.int32)
    np.testing.assert_array_equal(dense(indices, values, shape), a + b)
    assert indices.tolist() == sorted(indices.tolist())


@fast
@given(pairs)
def test_the_gradient_of_a_sum_goes_to_each_element_that_took_part(pair):
    a, b = pair
    union = np.argwhere((a != 0) | (b != 0))
    gradient = np.arange(len(union), dtype=np.int32)
    of_a, of_b = outputs("SparseAddGrad", gradient, np.argwhere(a), np.argwhere(b), union)
    spread = dense(union, gradient, a.shape)
    np.testing.assert_array_equal(of_a, spread[a != 0])
    np.testing.assert_array_equal(of_b, spread[b != 0])


@fast
@given(pairs)
def test_a_maximum_is_that_of_the_dense_tensors(pair):
    a, b = pair
    indices, values = outputs("SparseSparseMaximum", *sparse(a), *sparse(b))
    np.testing.assert_array_equal(dense(indices, values, a.shape), np.maximum(a, b))


@pytest.mark.parametrize(("a", "b", "pairs"), [
    ([0, 0], [0, 0, 0], [(0, 0), (1, 1), (-1, 2)]),  # the n-th occurrences meet
    ([2, 0], [1], [(-1, 0), (0, -1), (1, -1)]),  # the lower head is next
    ([], [1, 0], [(-1, 0), (-1, 1)]),
])
def test_repeated_and_unordered_indices_meet_as_in_tensorflow(a, b, pairs):
    first, second = (np.int64(x).reshape(-1, 1) for x in (a, b))
    shape, values = np.int64([3]), [np.float64(10 ** np.arange(len(x))) for x in (a, b)]
    indices, sums, _ = outputs("SparseAdd", first, values[0], shape, second, values[1], shape, np.float64(0),
                               Treal=dtypes.float64)
    assert indices[:, 0].tolist() == [a[i] if i >= 0 else b[j] for i, j in pairs]
    assert sums.tolist() == [(10.0 ** i if i >= 0 else 0) + (10.0 ** j if j >= 0 else 0) for i, j in pairs]


@fast
@given(tensors, st.data())
def test_a_slice_is_that_of_the_dense_tensor(x, data):
    start = [data.draw(st.integers(0, length)) for length in x.shape]
    size = [data.draw(st.integers(0, 5)) for _ in x.shape]
    indices, values, shape = sparse(x)
    part = outputs("SparseSlice", indices, values, shape, np.int64(start), np.int64(size))
    np.testing.assert_array_equal(dense(*part), x[tuple(slice(a, a + n) for a, n in zip(start, size, strict=True))])
    gradient = outputs("SparseSliceGrad", np.arange(1, len(part[0]) + 1), indices, np.int64(start), part[0])[0]
    assert np.count_nonzero(gradient) == len(part[0])


def test_a_slice_cuts_at_its_size_and_not_at_the_shape():
    """TensorFlow does not look for elements outside of the shape."""
    indices, values = np.int64([[0, 0], [0, 3], [2, 1]]), np.int32([5, 6, 7])
    for start, size, kept in (([-1, 0], [9, 9], [[1, 0], [1, 3], [3, 1]]), ([0, 1], [3, 9], [[0, 2], [2, 0]]),
                              ([0, 0], [3, 3], [[0, 0], [2, 1]])):
        places, _, shape = outputs("SparseSlice", indices, values, np.int64([4, 3]), np.int64(start), np.int64(size))
        assert places.tolist() == kept
        assert shape.tolist() == [min(n, length - first) for n, length, first in zip(size, (4, 3), start, strict=True)]


@fast
@given(tensors, st.data())
def test_the_parts_of_a_split_make_the_tensor_again(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    count = data.draw(st.integers(1, x.shape[axis]))
    parts = outputs("SparseSplit", np.int64(axis), *sparse(x), num_split=count)
    pieces = [dense(*parts[i::count]) for i in range(count)]
    np.testing.assert_array_equal(np.concatenate(pieces, axis), x)
    assert [piece.shape for piece in pieces] == [piece.shape for piece in np.array_split(x, count, axis)]


@fast
@given(tensors, st.data())
def test_a_sparse_reduction_is_that_of_the_dense_tensor(x, data):
    axes = data.draw(st.sets(st.integers(0, x.ndim - 1)))
    for keep in (False, True):
        result = outputs("SparseReduceSumSparse", *sparse(x), np.int32(sorted(axes)), keep_dims=keep)
        np.testing.assert_array_equal(dense(*result), x.sum(tuple(axes), keepdims=keep))


def test_an_index_that_occurs_twice_adds_twice():
    total = outputs("SparseTensorDenseAdd", np.int64([[1], [1]]), np.int32([2, 3]), np.int64([2]), np.int32([10, 20]),
                    Tindices=dtypes.int64)[0]
    assert total.tolist() == [10, 25]


def test_a_gradient_without_its_element_is_an_error():
    with pytest.raises(InvalidArgument, match="indices"):
        outputs("SparseSliceGrad", np.float32([1]), np.int64([[0]]), np.int64([0]), np.int64([[1]]))


@pytest.mark.parametrize("shape", [[4, 4], [-1, 4], [2**62, 2**62]])
def test_indices_outside_a_dense_tensor_are_never_read(shape):
    for indices in ([[9, 9]], [[-1, 0]], [[2**62, 0]]):
        with pytest.raises(InvalidArgument):
            outputs("SparseDenseCwiseMul", np.int64(indices), np.float32([1]), np.int64(shape),
                    np.ones((4, 4), np.float32))


@pytest.mark.parametrize("version", ["", "V2"])
def test_a_gradient_of_a_mean_is_divided_among_the_rows_of_its_segment(version):
    gradients = outputs(f"SparseSegmentMeanGrad{version}", np.float32([[8], [2]]), np.int32([3, 1, 3]),
                        np.int32([0, 0, 1]), np.int32(4), Tsegmentids=dtypes.int32)
    if version:
        assert [x.tolist() for x in gradients] == [[[4], [6]], [1, 3]]
    else:
        assert gradients[0].tolist() == [[0], [4], [0], [6]]
