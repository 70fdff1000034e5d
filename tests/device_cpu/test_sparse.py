"""Sparse tensors against the dense ones that they stand for."""

import numpy as np
import pytest
from harness.call_op import call, same
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info, info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

fast = settings(max_examples=60)
dense_tensors = hnp.arrays(np.int32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=st.integers(0, 2))
matrices = hnp.arrays(np.int32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=4), elements=st.integers(0, 2))


def sparse(x):
    return np.argwhere(x), x[x != 0], np.array(x.shape, np.int64)


def dense(indices, values, shape):
    return call("SparseToDense", indices, np.asarray(shape), values, np.zeros((), values.dtype))


@fast
@given(dense_tensors)
def test_the_nonzero_elements_make_the_tensor_again(x):
    same(dense(*sparse(x)), x)


@fast
@given(dense_tensors, st.randoms())
def test_reordering_sorts_indices_and_takes_values_along(x, random):
    indices, values, shape = sparse(x)
    order = random.sample(range(len(values)), len(values))
    same(call("SparseReorder", indices[order], values[order], shape), indices, values)


@fast
@given(dense_tensors)
def test_reshaping_is_that_of_the_dense_tensor(x):
    indices, values, shape = sparse(x)
    for target in (x.shape[::-1], (-1,), (1, -1, *x.shape[1:])):
        moved, new_shape = call("SparseReshape", indices, shape, np.int64(target))
        same(dense(moved, values, new_shape), x.reshape(target))


@fast
@given(matrices, st.sampled_from([0, 1, -1]))
def test_concatenation_is_that_of_dense_tensors(x, axis):
    parts = [sparse(part) for part in (x, x * 2)]
    same(dense(*call("SparseConcat", *zip(*parts, strict=True), concat_dim=axis)), np.concatenate([x, x * 2], axis))


@fast
@given(matrices, st.booleans(), st.booleans())
def test_products_are_those_of_dense_matrices(x, adjoint_a, adjoint_b):
    x = x * (1 + 2j)
    inner = x.shape[0] if adjoint_a else x.shape[1]
    b = (np.arange(inner * 2) * 1j).reshape((2, inner) if adjoint_b else (inner, 2))
    want = (x.conj().T if adjoint_a else x) @ (b.conj().T if adjoint_b else b)
    same(call("SparseTensorDenseMatMul", *sparse(x), b, adjoint_a=adjoint_a, adjoint_b=adjoint_b), want)


@fast
@given(matrices)
def test_softmax_is_over_the_elements_that_are_there(x):
    indices, values, shape = sparse(x.astype(np.float64))
    got = call("SparseSoftmax", indices, values, shape)
    want = [np.exp(row[row != 0]) / np.exp(row[row != 0]).sum() for row in x]
    np.testing.assert_allclose(got, np.concatenate(want))


@fast
@given(matrices)
def test_rows_without_elements_get_the_default_in_their_first_column(x):
    indices, values, shape = sparse(x)
    filled, elements, is_empty, places = call("SparseFillEmptyRows", indices, values, shape, np.int32(7))
    want = x.copy()
    want[~x.any(1), 0] = 7
    same(dense(filled, elements, shape), want)
    same(is_empty, ~x.any(1))
    same(filled[places], indices)


def test_a_vector_or_a_scalar_may_stand_for_indices_and_one_value_for_all():
    same(call("SparseToDense", np.int32(2), np.int32([4]), np.int8(5), np.int8(1)), np.int8([1, 1, 5, 1]))
    same(call("SparseToDense", np.int32([0, 3]), np.int32([4]), np.int8(5), np.int8(1)), np.int8([5, 1, 1, 5]))


def test_a_sparse_scalar_has_one_element():
    empty = np.zeros((1, 0), np.int64)
    same(call("SparseToDense", empty, np.int64([]), np.float32([5]), np.float32(1)), np.float32(5))


def test_indices_that_repeat_are_refused_only_where_they_are_validated():
    indices, shape, values, zero = np.int64([[1], [1]]), np.int64([2]), np.float32([3, 4]), np.float32(0)
    same(call("SparseToDense", indices, shape, values, zero, validate_indices=False), np.float32([0, 4]))
    with pytest.raises(InvalidArgument, match="repeated"):
        call("SparseToDense", indices, shape, values, zero)


def one(*index):
    """A sparse tensor of one element."""
    return np.int64([index]), np.float32([1])


@pytest.mark.parametrize(("op", "inputs", "reason"), [
    ("SparseToDense", (np.int64([[2]]), np.int64([2]), np.float32([1]), np.float32(0)), "out of bounds"),
    ("SparseToDense", (np.int64([[0]]), np.int64([2, 2]), np.float32([1]), np.float32(0)), "must be equal"),
    ("SparseReorder", (*one(0, 0), np.int64([2])), "must be equal"),
    ("SparseReshape", (np.int64([[0]]), np.int64([6]), np.int64([4, -1])), "cannot have shape"),
    ("SparseReshape", (np.int64([[0]]), np.int64([6]), np.int64([-1, -1])), "one -1"),
    ("SparseReshape", (np.int64([[0, 0]]), np.int64([2**40] * 2), np.int64([-1])), "too large"),
    ("SparseFillEmptyRows", (*one(2, 0), np.int64([2, 2]), np.float32(0)), "out of bounds"),
    ("SparseSoftmax", (*one(0), np.int64([2])), "rank 2"),
    ("SparseTensorDenseMatMul", (*one(0, 3), np.int64([2, 2]), np.ones((2, 2), np.float32)), "out of bounds"),
    ("SparseTensorDenseMatMul", (*one(0, 0), np.int64([2, 3]), np.ones((2, 2), np.float32)), "inner"),
])
def test_sparse_tensors_that_do_not_fit_are_refused(op, inputs, reason):
    with pytest.raises(InvalidArgument, match=reason):
        call(op, *inputs)


def test_indices_are_not_looked_at_where_there_is_nothing_to_multiply():
    outside = (np.int64([[5, 5]]), np.float32([1]))
    for shape, dense in (((2, 2), (2, 0)), ((2, 0), (0, 3)), ((0, 2), (2, 3))):
        got = call("SparseTensorDenseMatMul", *outside, np.int64(shape), np.ones(dense, np.float32))
        same(got, np.zeros((shape[0], dense[1]), np.float32))


def test_lengths_of_the_dense_shape_are_known_where_it_is():
    indices, values = info(dtypes.int64, (None, 2)), info(dtypes.float32, (None,))
    to_dense, scalar = RULES["SparseToDense"].function, info(dtypes.float32, ())
    assert to_dense({}, indices, constant_info(np.int64([3, 4])), values, scalar).shape == (3, 4)
    assert to_dense({}, indices, info(dtypes.int64, (2,)), values, scalar).shape == (None, None)
    assert to_dense({}, indices, info(dtypes.int64, None), values, scalar).shape is None


REDUCTIONS = [  # axes, the sum and the maximum by TensorFlow
    ([0], [[0, 1], [-4, 3], [2, 0]], [[0, 1], [-4, 3], [2, 0]]), ([1], [[2, 1], [-4, 3]], [[2, 1], [-4, 3]]),
    ([2], [[1, 0, 2], [0, -1, 0]], [[1, 0, 2], [0, 3, 0]]), ([0, 1], [-2, 4], [2, 3]), ([1, 0], [-2, 4], [2, 3]),
    ([-1], [[1, 0, 2], [0, -1, 0]], [[1, 0, 2], [0, 3, 0]]), ([0, 1, 2], 2, 3), (0, [[0, 1], [-4, 3], [2, 0]],
    [[0, 1], [-4, 3], [2, 0]]), ([0, -3], [[0, 1], [-4, 3], [2, 0]], [[0, 1], [-4, 3], [2, 0]]),
    ([2, 0], [1, -1, 2], [1, 3, 2]),
    ([], [[[0, 1], [0, 0], [2, 0]], [[0, 0], [-4, 3], [0, 0]]], [[[0, 1], [0, 0], [2, 0]], [[0, 0], [-4, 3], [0, 0]]]),
]
THREE_AXES = np.int64([[0, 0, 1], [0, 2, 0], [1, 1, 1], [1, 1, 0]]), [1, 2, 3, -4], np.int64([2, 3, 2])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64])
@pytest.mark.parametrize(("axes", "total", "largest"), REDUCTIONS)
def test_reductions_to_a_dense_tensor(axes, total, largest, dtype):
    indices, values, shape = THREE_AXES
    for op, expected in (("SparseReduceSum", total), ("SparseReduceMax", largest)):
        for keep_dims in (False, True):
            reduced = call(op, indices, np.array(values, dtype), shape, np.int32(axes), keep_dims=keep_dims)
            dropped = {axis % 3 for axis in np.atleast_1d(axes).astype(int)}
            kept_dims = [1 if axis in dropped else length for axis, length in enumerate(shape)]
            same(reduced, np.array(expected, dtype).reshape(kept_dims if keep_dims else np.shape(expected)))


@fast
@given(dense_tensors, st.data())
def test_a_sum_is_that_of_the_dense_tensor(x, data):
    axes = data.draw(st.lists(st.integers(-x.ndim, x.ndim - 1), max_size=3))
    order = data.draw(st.permutations(range(np.count_nonzero(x))))
    indices, values, shape = sparse(x)
    dropped = tuple({axis % x.ndim for axis in axes})
    same(call("SparseReduceSum", indices[order], values[order], shape, np.int32(axes), keep_dims=False),
         x.sum(axis=dropped, dtype=x.dtype) if dropped else x)


@pytest.mark.parametrize(("indices", "shape", "axes"), [
    ([[5, 0]], [2, 3], [1]), ([[1, 0]], [2, 3], [2]), ([[1, 0]], [2, 3], [-3]), ([[1, 0]], [2, -3], [1]),
    ([[1, 0]], [2, 3, 4], [1]), ([[1, 0]], [2, 3], [[0]]),
])
def test_reductions_of_what_is_no_sparse_tensor_or_axis_are_refused(indices, shape, axes):
    for op in ("SparseReduceSum", "SparseReduceMax"):
        with pytest.raises(InvalidArgument):
            call(op, np.int64(indices), np.float32([1]), np.int64(shape), np.int32(axes), keep_dims=False)
