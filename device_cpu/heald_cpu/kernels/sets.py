"""Kernels that treat tensors as sets: distinct elements or slices, differences, unions.

NaN equals no element, so each NaN is distinct.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import REAL, Array, sortable

Run = Callable[..., Any]


class Distinct(NamedTuple):
    """Distinct elements in order of first occurrence. `places`: the index of each first occurrence. `numbers`: for each
    element of the input, its number among the distinct ones. `counts`: the occurrences of each distinct element."""

    places: Array
    numbers: Array
    counts: Array


def distinct(x: Array) -> Distinct:
    """The distinct elements of a vector."""
    if x.dtype == object:
        number_of_text: dict[bytes, int] = {}
        x = np.array([number_of_text.setdefault(text, len(number_of_text)) for text in x], np.int64)
    return _by_place(*np.unique(sortable(x), True, True, True, equal_nan=False)[1:])


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
        slices = np.moveaxis(x, axis, 0)
        distinct_values = distinct(x) if x.ndim == 1 else distinct_rows(slices.reshape(rows))
        parts = (x.take(distinct_values.places, axis), distinct_values.numbers.astype(index_type),
                 distinct_values.counts.astype(index_type))
        return parts if counted else parts[:2]

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


def dense_to_dense(b: Bind) -> Run:
    """DenseToDenseSetOperation. Each row is a set. An element is the pair of its row and its rank among all values, as
    one number."""
    groups = b.inputs[0].meta.dims[:-1]
    operation = SET_OPERATIONS[b.attrs["set_operation"].lower()]

    def run(*tensors: Array) -> tuple[Array, Array, Array]:
        values, ranks = np.unique(np.concatenate([x.reshape(-1) for x in tensors]), return_inverse=True)
        count = max(len(values), 1)
        split = np.split(ranks, [tensors[0].size])
        keys = [_rows(x) * count + part for x, part in zip(tensors, split, strict=True)]
        rows, picks = np.divmod(operation(*keys), count)
        sizes = np.bincount(rows, minlength=1)
        columns = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[rows]
        indices = np.stack([*np.unravel_index(rows, groups), columns], 1)
        return indices, values[picks], np.array([*groups, sizes.max()])

    return run


def _rows(x: Array) -> Array:
    """The number of each element's row."""
    return np.repeat(np.arange(x.size // max(x.shape[-1], 1)), x.shape[-1])


def register_kernels(kernels: Kernels) -> None:
    for op in ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"):
        kernels.kernel(op, dtypes={"T": (*REAL, "bool", "string")}, allocates=True)(unique)
    kernels.kernel("ListDiff", dtypes={"T": (*REAL, "string")}, allocates=True)(list_diff)
    kernels.kernel("DenseToDenseSetOperation", allocates=True)(dense_to_dense)
