"""Kernels that treat tensors as sets: distinct elements or slices, differences, unions.

NaN equals no element, so each NaN is distinct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import REAL, Array, sortable
from .sparse_checks import check_increasing, check_inside

Run = Callable[..., Any]


FEW_ELEMENTS = 64  # up to so many, a dict takes 3 us, where tables take 10
CLOSE_TOGETHER = 4  # times the number of elements: the range of integers that a table is made for


class Distinct(NamedTuple):
    """Distinct elements in order of first occurrence. `places`: the index of each first occurrence. `numbers`: for each
    element of the input, its number among the distinct ones. `counts`: the occurrences of each distinct element."""

    places: Array
    numbers: Array
    counts: Array


def distinct(x: Array) -> Distinct:
    """The distinct elements of a vector."""
    if x.dtype == object or (x.dtype.kind in "iu" and x.size <= FEW_ELEMENTS):
        return _distinct_by_dict(x.tolist())
    if x.dtype.kind in "iu" and int(x.max()) - int(x.min()) < CLOSE_TOGETHER * x.size:
        signed = x - x.min() if x.dtype.kind == "u" else x  # large unsigned numbers are none of int64
        numbers = signed.astype(np.int64)
        return _distinct_by_table(numbers - numbers.min())
    return _by_place(*np.unique(sortable(x), True, True, True, equal_nan=False)[1:])


def _distinct_by_dict(elements: list[Any]) -> Distinct:
    number_of: dict[Any, int] = {}
    numbers = np.array([number_of.setdefault(element, len(number_of)) for element in elements], np.int64)
    places = np.empty(len(number_of), np.int64)
    places[numbers[::-1]] = np.arange(len(elements) - 1, -1, -1)  # the last assignment stays
    return Distinct(places, numbers, np.bincount(numbers, minlength=len(number_of)))


def _distinct_by_table(numbers: Array) -> Distinct:
    """The distinct ones of numbers from 0 on, which are close together: a table with a place for each is no sorting."""
    counts = np.bincount(numbers)
    first = np.empty(len(counts), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)  # the last assignment stays
    present = counts.nonzero()[0]
    order = present[first[present].argsort()]
    number_of = first  # its places are read
    places = first[order]
    number_of[order] = np.arange(len(order))
    return Distinct(places, number_of[numbers], counts[order])


def distinct_rows(x: Array) -> Distinct:
    """The distinct rows of a matrix, compared by the numbers of their elements among all distinct elements."""
    rows = np.zeros((len(x), 1)) if not x.size else distinct(x.reshape(-1)).numbers.reshape(x.shape)
    return _by_place(*np.unique(rows, True, True, True, axis=0)[1:])


def _by_place(places: Array, numbers: Array, counts: Array) -> Distinct:
    order = places.argsort()
    return Distinct(places[order], order.argsort()[numbers.reshape(-1)], counts[order])


def unique(b: Bind) -> Run:
    """Unique and UniqueV2, and their forms with counts."""
    index_type, counted = b.attrs["out_idx"].numpy, len(b.outputs) == 3
    axis, lengths = _axis(b), b.inputs[0].meta.dims
    rows = (lengths[axis], prod(n for i, n in enumerate(lengths) if i != axis))

    def run(x: Array, *_: Array) -> tuple[Array, ...]:
        distinct_values = distinct(x) if x.ndim == 1 else distinct_rows(np.moveaxis(x, axis, 0).reshape(rows))
        parts = x.take(distinct_values.places, axis), distinct_values.numbers.astype(index_type)
        return (*parts, distinct_values.counts.astype(index_type)) if counted else parts

    return run


def _axis(b: Bind) -> int:
    axis = b.inputs[1].value if len(b.inputs) == 2 else None
    return int(axis[0]) % len(b.inputs[0].meta.dims) if axis is not None and axis.size else 0


def list_diff(b: Bind) -> Run:
    index_type = b.attrs["out_idx"].numpy

    def run(x: Array, y: Array) -> tuple[Array, Array]:
        places = np.flatnonzero(~_among(x, y))
        return x[places], places.astype(index_type)

    return run


def _among(x: Array, y: Array) -> Array:
    """A bool for each element of `x`: True if it is an element of `y`."""
    if x.dtype != object:
        return np.isin(sortable(x), sortable(y))
    members = set(y)
    return np.array([text in members for text in x], bool)


SET_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "a-b": np.setdiff1d,
    "b-a": lambda a, b: np.setdiff1d(b, a),
    "intersection": np.intersect1d,
    "union": np.union1d,
}


class Groups(NamedTuple):
    """Sets as the elements of groups: the number of each element's group, and the element."""

    rows: Array
    values: Array


def operate(operation: str, lengths: Sequence[int], first: Groups, second: Groups) -> tuple[Array, Array, Array]:
    """The sparse tensor of an operation's result in each group. `lengths`: the shape of the groups. An element is the
    pair of its group and its value, as one number."""
    values, ranks = np.unique(np.concatenate([first.values, second.values]), return_inverse=True)
    groups, numbers = np.unique(np.concatenate([first.rows, second.rows]), return_inverse=True)
    count = max(len(values), 1)
    keys = np.split(numbers.reshape(-1) * count + ranks.reshape(-1), [len(first.rows)])
    rows, picks = np.divmod(SET_OPERATIONS[operation.lower()](*keys), count)
    sizes = np.bincount(rows, minlength=1)
    columns = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[rows]
    indices = np.stack([*np.unravel_index(groups[rows], lengths), columns], 1)
    return indices, values[picks], np.array([*lengths, sizes.max()])


def dense_to_dense(b: Bind) -> Run:
    """DenseToDenseSetOperation. Each row is a set."""
    lengths, operation = b.inputs[0].meta.dims[:-1], b.attrs["set_operation"]
    return lambda first, second: operate(operation, lengths, _groups_of_dense(first), _groups_of_dense(second))


def _groups_of_dense(x: Array) -> Groups:
    return Groups(np.repeat(np.arange(x.size // max(x.shape[-1], 1)), x.shape[-1]), x.reshape(-1))


def dense_to_sparse(b: Bind) -> Run:
    operation, validate = b.attrs["set_operation"], b.attrs["validate_indices"]
    lengths = b.inputs[0].meta.dims[:-1]

    def run(dense: Array, indices: Array, values: Array, shape: Array) -> tuple[Array, Array, Array]:
        sparse = _groups_of_sparse(indices, values, shape, validate=validate)
        if shape[:-1].tolist() != list(lengths):
            raise errors.InvalidArgument(f"sets in groups of shape {list(lengths)} and {shape[:-1].tolist()} do not "
                                         "belong together")
        return operate(operation, lengths, _groups_of_dense(dense), sparse)

    return run


def sparse_to_sparse(b: Bind) -> Run:
    operation, validate = b.attrs["set_operation"], b.attrs["validate_indices"]

    def run(*parts: Array) -> tuple[Array, Array, Array]:
        first, second = (_groups_of_sparse(*parts[i : i + 3], validate=validate) for i in (0, 3))
        lengths, other_lengths = parts[2][:-1].tolist(), parts[5][:-1].tolist()
        if lengths != other_lengths:
            raise errors.InvalidArgument(f"sets in groups of shape {lengths} and {other_lengths} do not belong "
                                         "together")
        return operate(operation, lengths, first, second)

    return run


def _groups_of_sparse(indices: Array, values: Array, shape: Array, *, validate: bool) -> Groups:
    """Indices inside the shape are needed, in any order without `validate`."""
    lengths = shape[:-1].tolist()
    if (shape < 0).any() or prod(lengths) > np.iinfo(np.int64).max:
        raise errors.InvalidArgument(f"a sparse tensor cannot have shape {shape.tolist()}")
    check_inside(indices, shape)
    if validate:
        check_increasing(indices)
    rows = np.zeros(len(indices), np.int64)
    for length, column in zip(lengths, indices.T, strict=False):
        rows = rows * length + column
    return Groups(rows, values)


def set_size(b: Bind) -> Run:
    validate = b.attrs["validate_indices"]

    def run(indices: Array, values: Array, shape: Array) -> Array:
        groups = _groups_of_sparse(indices, values, shape, validate=validate)
        lengths = shape[:-1].tolist()
        b.ask(prod(lengths) * 12, "the sizes of sets")
        ranks = np.unique(values, return_inverse=True)[1].reshape(-1)
        members = np.unique(np.stack([groups.rows, ranks], 1), axis=0)
        return np.bincount(members[:, 0], minlength=prod(lengths)).astype(np.int32).reshape(lengths)

    return run


def register_kernels(kernels: Kernels) -> None:
    for op in ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"):
        kernels.kernel(op, dtypes={"T": (*REAL, "bool", "string")}, allocates=True)(unique)
    kernels.kernel("ListDiff", dtypes={"T": (*REAL, "string")}, allocates=True)(list_diff)
    for op, bind in {
        "DenseToDenseSetOperation": dense_to_dense, "DenseToSparseSetOperation": dense_to_sparse, "SetSize": set_size,
        "SparseToSparseSetOperation": sparse_to_sparse,
    }.items():
        kernels.kernel(op, allocates=True)(bind)
