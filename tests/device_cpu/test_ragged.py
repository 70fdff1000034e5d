"""Ragged tensors against the lists of lists that they stand for."""

import heald
import numpy as np
import pytest
from harness.call_op import call, same
from heald.errors import InvalidArgument, ResourceExhausted
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import constant_info, info
from heald_tf_ops.metadata import RULES
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
ragged = st.lists(st.lists(st.integers(1, 9), max_size=4), max_size=4)


def parts(rows):
    """Splits and values."""
    splits = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    return splits, np.int32([e for row in rows for e in row])


def pad_rows(rows, width):
    return np.int32([row[:width] + [0] * (width - len(row)) for row in rows]).reshape(len(rows), width)


def to_tensor(shape, values, default, partitions, *types):
    return call("RaggedTensorToTensor", np.int64(shape), values, np.int32(default), partitions,
                row_partition_types=types)


@fast
@given(ragged, st.sampled_from([-1, 0, 2, 6]))
def test_rows_are_padded_or_cut_to_one_width(rows, width):
    splits, values = parts(rows)
    want = pad_rows(rows, max(map(len, rows), default=0) if width == -1 else width)
    same(to_tensor([-1, width], values, 0, [splits], "ROW_SPLITS"), want)
    row_ids = np.repeat(np.arange(len(rows)), np.diff(splits))
    same(to_tensor([-1, width], values, 0, [np.int64(len(rows)), row_ids], "FIRST_DIM_SIZE", "VALUE_ROWIDS"), want)


@pytest.mark.parametrize(("partitions", "types", "reason"), [
    ([np.int64([])], ["ROW_SPLITS"], "row splits must have at least one element"),
    ([np.int64([[0, 1]])], ["ROW_SPLITS"], "a partition of ROW_SPLITS must have rank 1, given 2"),
    ([np.int64(1)], ["ROW_SPLITS"], "a partition of ROW_SPLITS must have rank 1, given 0"),
    ([np.int64([0, 1, np.iinfo(np.int64).min])], ["ROW_SPLITS"], "row splits must be sorted"),
    ([np.int64([1]), np.int64([0])], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], "must have rank 0, given 1"),
    ([np.int64(-2), np.int64([])], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], "must not be negative, given -2"),
    ([np.int64(1), np.int64([[0]])], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], "must have rank 1, given 2"),
])
def test_partitions_of_a_wrong_form_are_refused(partitions, types, reason):
    with pytest.raises(InvalidArgument, match=reason):
        to_tensor([-1, 2], np.int32([1]), 0, partitions, *types)


def test_splits_that_stand_for_more_rows_than_memory_are_refused():
    with pytest.raises(ResourceExhausted, match="an index of rows"):
        heald.execute("RaggedTensorToTensor", np.int64([-1, 2]), np.int32([1]), np.int32(0), [np.int64([0, 1 << 60])],
                      attrs={"row_partition_types": ["ROW_SPLITS"]}).numpy()


@fast
@given(ragged)
def test_a_sparse_tensor_has_every_value_in_its_row(rows):
    splits, values = parts(rows)
    indices, elements, shape = call("RaggedTensorToSparse", [splits], values)
    same(indices, np.array([(i, j) for i, row in enumerate(rows) for j in range(len(row))], np.int64).reshape(-1, 2))
    same(elements, values)
    same(shape, np.int64([len(rows), max(map(len, rows), default=0)]))


@fast
@given(ragged.filter(len), st.data())
def test_rows_are_gathered_whole(rows, data):
    picks = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5))
    splits, values = parts(rows)
    got = call("RaggedGather", [splits], values, np.int32(picks), OUTPUT_RAGGED_RANK=1)
    same(got, *parts([rows[i] for i in picks]))


def test_a_matrix_of_indices_adds_a_dimension_and_a_scalar_takes_one():
    splits, values = parts([[1, 2], [], [3]])
    outer, inner, gathered = call("RaggedGather", [splits], values, np.int32([[2, 0], [1, 2]]), OUTPUT_RAGGED_RANK=2)
    assert (outer.tolist(), inner.tolist(), gathered.tolist()) == ([0, 2, 4], [0, 1, 3, 3, 4], [3, 1, 2, 3])
    same(call("RaggedGather", [splits], values, np.int32(0), OUTPUT_RAGGED_RANK=0), np.int32([1, 2]))


def test_two_ragged_dimensions_are_padded_each():
    outer, inner = np.int64([0, 1, 3]), np.int64([0, 2, 2, 3])
    got = to_tensor(-1, np.int32([1, 2, 3]), 9, [outer, inner], "ROW_SPLITS", "ROW_SPLITS")
    same(got, np.int32([[[1, 2], [9, 9]], [[9, 9], [3, 9]]]))


def test_values_may_be_rows_and_the_default_one_for_all():
    values = np.int32([[1, 2], [3, 4], [5, 6]])
    got = to_tensor([3, -1, 2], values, [7], [np.int64([0, 1, 3])], "ROW_SPLITS")
    same(got, np.int32([[[1, 2], [7, 7]], [[3, 4], [5, 6]], [[7, 7], [7, 7]]]))


@fast
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(-3, 3).filter(bool)), max_size=4))
def test_ranges_are_pythons(bounds):
    ranges = [list(range(*arguments)) for arguments in bounds]
    starts, limits, deltas = np.int32(bounds).reshape(-1, 3).T
    same(call("RaggedRange", starts, limits, deltas), *parts(ranges))


def test_the_widest_ranges_do_not_overflow_and_float_ranges_add_step_by_step():
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    same(call("RaggedRange", np.int64(low), np.int64(high), np.int64(2**62)),
         np.int64([0, 4]), np.int64([low, -2**62, 0, 2**62]))
    same(call("RaggedRange", np.float32(0), np.float32(1), np.float32(0.1))[1][8], np.float32(0.8000001))


@pytest.mark.parametrize(("bounds", "reason"), [
    (([0], [1], [0]), "delta != 0"), (([0, 1], [1], [1]), "same shape"), (([[0]], [1], [1]), "scalars or vectors"),
    ((0.0, np.inf, 1.0), "do not fit"), ((0.0, np.nan, 1.0), "do not fit"), ((0, 2**40, 1), "do not fit"),
])
def test_ranges_that_cannot_be_are_refused(bounds, reason):
    with pytest.raises(InvalidArgument, match=reason):
        call("RaggedRange", *bounds, Tsplits=dtypes.int32)


@pytest.mark.parametrize("splits", [[0, 2, 1, 3], [0, 4], [-1, 3], []])
def test_splits_that_do_not_divide_the_values_are_refused(splits):
    splits, values = np.int64(splits), np.int32([1, 2, 3])
    with pytest.raises(InvalidArgument, match="splits"):
        call("RaggedTensorToSparse", [splits], values)
    with pytest.raises(InvalidArgument, match="splits"):
        call("RaggedGather", [splits], values, np.int32([0]), OUTPUT_RAGGED_RANK=1)


@pytest.mark.parametrize(("shape", "default", "partitions", "types", "reason"), [
    (3, 0, [[0, 3]], ["ROW_SPLITS"], "must be -1"), ([-1], 0, [[0, 3]], ["ROW_SPLITS"], "rank of shape"),
    ([-2, 1], 0, [[0, 3]], ["ROW_SPLITS"], ">= -1"), ([-1, -1], [0, 0], [[0, 3]], ["ROW_SPLITS"], "default_value"),
    ([-1, -1], 0, [[0, 3]], ["ROW_LENGTHS"], "cannot be ROW_LENGTHS"),
    ([-1, -1], 0, [[0, 0, 0]], ["VALUE_ROWIDS"], "cannot be VALUE_ROWIDS"),
    ([-1, -1], 0, [2, [0, 0, 2]], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], "rowids"),
    ([-1, -1], 0, [[1, 3]], ["ROW_SPLITS"], "row splits"),
    ([-1, -1], 0, [[0, 3]], ["ROW_SPLITS", "ROW_SPLITS"], "must be equal"),
])
def test_partitions_that_do_not_fit_are_refused(shape, default, partitions, types, reason):
    with pytest.raises(InvalidArgument, match=reason):
        to_tensor(shape, np.int32([1, 2, 3]), default, [np.int64(p) for p in partitions], *types)


def test_lengths_that_a_shape_leaves_open_are_unknown_but_for_those_of_a_value():
    values, splits, default = info(dtypes.int32, (None, 2)), info(dtypes.int64, (4,)), info(dtypes.int32, ())
    infer = RULES["RaggedTensorToTensor"].function
    attrs = {"row_partition_types": ("ROW_SPLITS",)}
    assert infer(attrs, constant_info(np.int64([5, -1, -1])), values, default, splits).shape == (5, None, 2)
    assert infer(attrs, info(dtypes.int64, (3,)), values, default, splits).shape == (None, None, 2)
    assert infer(attrs, info(dtypes.int64, None), info(dtypes.int32, None), default, splits).shape is None


def to_variant(splits, values, *, batched):
    return call("RaggedTensorToVariant", splits, values, RAGGED_RANK=len(splits), Tsplits=dtypes.int64,
                batched_input=batched)


def from_variant(encoded, rank, inner=-1, **types):
    types = {"Tvalues": dtypes.int32, "Tsplits": dtypes.int64} | types
    return call("RaggedTensorFromVariant", encoded, input_ragged_rank=inner, output_ragged_rank=rank, **types)


def flat(rows):
    return [element for row in rows for element in row]


@fast
@given(st.lists(ragged, max_size=4))
def test_rows_of_a_variant_stack_to_the_ragged_tensor_that_they_were(nested):
    outer, rows = np.append(0, np.cumsum([len(rows) for rows in nested])).astype(np.int64), flat(nested)
    inner, values = parts(rows)
    variants = to_variant([outer, inner], values, batched=True)
    assert [variants[i].values.tolist() for i in range(len(nested))] == [flat(rows) for rows in nested]
    lengths = [np.diff(variants[i].splits[0]).tolist() for i in range(len(nested))]
    assert lengths == [[*map(len, rows)] for rows in nested]
    same(from_variant(variants, 2, 1), outer, inner, values)
    same(from_variant(to_variant([outer, inner], values, batched=False), 2), outer, inner, values)
    same(from_variant(to_variant([inner], values, batched=True), 1), inner, values)


def test_a_matrix_of_variants_has_rows_of_one_length():
    values = np.int32([1, 2, 3])
    variants = to_variant([np.int64([0, 1, 1, 3, 3])], values, batched=True).reshape(2, 2)
    same(from_variant(variants, 2), np.int64([0, 2, 4]), np.int64([0, 1, 1, 3, 3]), values)


def test_dense_rows_are_stacked_with_a_new_dimension():
    rows = np.int32([[1, 2], [3, 4]])
    same(from_variant(to_variant([], rows, batched=True), 0), rows)
    same(from_variant(to_variant([], np.int32(7), batched=False), 0), np.int32(7))


@pytest.mark.parametrize(("rank", "inner", "types", "reason"), [
    (2, 0, {}, "output_ragged_rank: 2"), (2, 1, {}, "ragged_rank=0. Expected ragged_rank=1"),
    (1, 0, {"Tvalues": dtypes.float32}, "dtype: float32, found: int32"), (0, -1, {}, "compatible shapes"),
])
def test_variants_of_another_kind_are_refused(rank, inner, types, reason):
    variants = to_variant([np.int64([0, 1, 3])], np.int32([1, 2, 3]), batched=True)
    with pytest.raises(InvalidArgument, match=reason):
        from_variant(variants, rank, inner, **types)


def test_components_that_cannot_be_stacked_are_refused():
    with pytest.raises(InvalidArgument, match="rank >= 1"):
        from_variant(to_variant([], np.int32([1, 2]), batched=True), 1, 0)
    pair = to_variant([np.int64([0, 1])], np.int32([[1, 2]]), batched=True), to_variant(
        [np.int64([0, 1])], np.int32([[1, 2, 3]]), batched=True)
    with pytest.raises(InvalidArgument, match="compatible shapes"):
        from_variant(np.concatenate(pair), 1)
    with pytest.raises(InvalidArgument, match="row_splits"):
        from_variant(to_variant([np.int64([0, 1])], np.int32([1]), batched=False), 1, Tsplits=dtypes.int32)
    with pytest.raises(InvalidArgument, match="a RaggedTensor is expected"):
        from_variant(np.array([None], object), 1)


@pytest.mark.parametrize("splits", [[0, 2, 1, 3], [0, 4], [1, 3], []])
@pytest.mark.parametrize("batched", [True, False])
def test_splits_that_do_not_divide_the_values_make_no_variant(splits, batched):
    with pytest.raises(InvalidArgument, match="splits"):
        to_variant([np.int64(splits)], np.int32([1, 2, 3]), batched=batched)
