"""Feature crosses against the product of Python's rows, and the columns that are none."""

from itertools import product

import heald
import numpy as np
import pytest
from builders.graphs import graph, placeholder
from harness.run_op import run_op
from heald.errors import InvalidArgument, ResourceExhausted, Unimplemented
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

fast = settings(max_examples=60)
columns_of_rows = st.integers(0, 3).flatmap(
    lambda rows: st.lists(st.lists(st.lists(st.integers(-3, 99), max_size=3), min_size=rows, max_size=rows), min_size=1,
                          max_size=3))
KEY = 956888297470


def sparse(rows):
    indices = np.array([[i, j] for i, row in enumerate(rows) for j in range(len(row))], np.int64).reshape(-1, 2)
    return indices, flat(rows), np.int64([len(rows), max(map(len, rows), default=0)])


def flat(rows):
    return np.array([v for row in rows for v in row], np.int64)


def splits(rows):
    return np.cumsum([0, *map(len, rows)])


def strings(*texts):
    return np.array(texts, object)


def sparse_cross(op, parts, *others, dense=(), **attrs):
    inputs = [part for kind in zip(*parts, strict=True) for part in kind] + [*dense, *others]
    types = {"N": len(parts), "sparse_types": tuple(dtypes.of_numpy(values.dtype) for _, values, _ in parts),
             "dense_types": tuple(dtypes.of_numpy(x.dtype) for x in dense)}
    return run_op(op, inputs, types | attrs)


def ragged_cross(columns, **attrs):
    types = {name: (dtypes.int64,) * len(columns) for name in ("ragged_values_types", "ragged_splits_types")}
    return run_op("RaggedCross", [*map(flat, columns), *map(splits, columns)], {
        **types, "Nsparse": 0, "sparse_values_types": (), "dense_types": (), "input_order": "R" * len(columns),
        "hashed_output": False, "num_buckets": 0, "hash_key": KEY, "out_values_type": dtypes.string,
        "out_row_splits_type": dtypes.int64, **attrs})


@pytest.mark.parametrize(("rows", "widths"), [(5, (1, 1)), (4, (2, 3, 1)), (3, (2, 0)), (0, (1, 2)), (2, (3,))])
def test_dense_columns_cross_as_sparse_columns_of_the_same_rows(rows, widths):
    columns = [np.arange(rows * width).reshape(rows, width) % 7 for width in widths]
    separator = np.array(b"_", object)
    dense = sparse_cross("SparseCrossV2", [], separator, dense=columns)
    expected = sparse_cross("SparseCrossV2", [sparse(column.tolist()) for column in columns], separator)
    assert [array.tolist() for array in dense] == [array.tolist() for array in expected]


@fast
@given(columns_of_rows)
def test_the_last_column_changes_first(columns):
    expected = [[b"_".join(b"%d" % v for v in values) for values in product(*rows)]
                for rows in zip(*columns, strict=True)]
    indices, values, shape = sparse_cross("SparseCrossV2", [*map(sparse, columns)], np.array(b"_", object))
    assert values.tolist() == [text for row in expected for text in row]
    assert indices.tolist() == [[i, j] for i, row in enumerate(expected) for j in range(len(row))]
    assert shape.tolist() == [len(expected), max(map(len, expected), default=0)]
    values, bounds = ragged_cross(columns)
    assert [text.replace(b"_X_", b"_") for text in values] == [text for row in expected for text in row]
    assert bounds.tolist() == splits(expected).tolist()


@fast
@given(columns_of_rows, st.integers(1, 50))
def test_buckets_are_hashes_modulo_their_number(columns, buckets):
    attrs = {"hashed_output": True, "out_values_type": dtypes.int64}
    hashes, bucket_numbers = (ragged_cross(columns, num_buckets=n, **attrs)[0] for n in (2**40, buckets))
    assert hashes.dtype == np.int64
    assert ((hashes >= 0) & (hashes < 2**40)).all()
    assert ((bucket_numbers >= 0) & (bucket_numbers < buckets)).all()


def test_elements_behind_an_unordered_row_do_not_count():
    column = np.int64([[0, 0], [2, 0], [1, 0]]), np.int64([1, 2, 3]), np.int64([3, 1])
    assert sparse_cross("SparseCrossV2", [column], np.array(b"", object))[1].tolist() == [b"1", b"2"]


def test_dense_integers_have_no_strong_hash():
    """TensorFlow reads them as strings, and crashes."""
    inputs = np.int64(5), np.array(True), np.int64([1, 2])
    with pytest.raises(Unimplemented, match="strong"):
        sparse_cross("SparseCrossHashed", [], *inputs, dense=[np.int64([[1]])])
    assert sparse_cross("SparseCrossHashed", [], *inputs, dense=[strings(b"a").reshape(1, 1)])[1].shape == (1,)


def test_without_a_cross_dense_integers_need_no_hash():
    inputs, nothing = (np.int64(5), np.array(True), np.int64([1, 2])), np.empty((2, 0), object)
    for dense in ([np.zeros((0, 3), np.int64)], [nothing, np.int64([[1], [2]])]):
        assert sparse_cross("SparseCrossHashed", [], *inputs, dense=dense)[1].shape == (0,)
    with pytest.raises(InvalidArgument, match="number of rows"):
        sparse_cross("SparseCrossHashed", [sparse([[1]])], *inputs, dense=[np.int64([[1], [2]])])


@pytest.mark.parametrize("column", [
    (np.int64([[0, 0]]), np.int64([1]), np.int64([-1, 2])),
    (np.int64([[0, 0]]), np.int64([1, 2]), np.int64([1, 2])),
    (np.int64([[0]]), np.int64([1]), np.int64([1])),
])
def test_columns_that_are_no_matrices_are_refused(column):
    with pytest.raises(InvalidArgument):
        sparse_cross("SparseCrossV2", [column], np.array(b"", object))


@pytest.mark.parametrize("attrs", [{"N": 2}, {"N": 0}, {"N": 0, "sparse_types": ()}])
def test_counts_of_columns_that_differ_are_refused(attrs):
    with pytest.raises((InvalidArgument, ValueError)):
        sparse_cross("SparseCrossV2", [sparse([[1]])], np.array(b"", object), **attrs)


def test_more_crosses_than_memory_holds_are_refused_before_they_are_made():
    nodes = [placeholder("x", dtype=dtypes.int64), placeholder("sep", dtype=dtypes.string)]
    types = {"N": 0, "sparse_types": (), "dense_types": (dtypes.int64,) * 6}
    crossed = Node("op", "SparseCrossV2", [*["x"] * 6, "sep"], attrs=types)
    with heald.Session(graph(*nodes, crossed), device="CPU:0") as session, \
            pytest.raises((ResourceExhausted, InvalidArgument)):
        session.run("op:1", {"x": np.arange(2000).reshape(1, -1), "sep": np.array(b"", object)})
