"""Kernels that merge two sparse tensors of one shape, element by element, and their gradients.

Indices are in row-major order. Both sides' indices get ranks among all distinct ones, by which NumPy merges them. An
index may occur several times: its first occurrences on both sides belong together, its second ones, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import NUMBERS, REAL, Array
from .segment import lengths_of_runs, starts_of_runs
from .sparse_checks import check_inside, row_major

Run = Callable[..., Any]


class Merge(NamedTuple):
    """For each element of the union, its place in the first and in the second tensor; -1 where that has none."""

    first: Array
    second: Array

    def values(self, side: int, values: Array) -> Array:
        """The values of one side for each element of the union, 0 where it has none."""
        places = self[side]
        padded = np.append(values, np.zeros(1, values.dtype))
        return padded[places]

    def indices(self, first: Array, second: Array) -> Array:
        merged = np.empty((len(self.first), first.shape[1]), np.int64)
        is_first = self.first >= 0
        merged[is_first] = first[self.first[is_first]]
        merged[~is_first] = second[self.second[~is_first]]
        return merged


def merge(first: Array, second: Array) -> Merge:
    ranks = ranks_of(np.concatenate([first, second]))
    of_first, of_second = ranks[: len(first)], ranks[len(first) :]
    if (of_first[1:] < of_first[:-1]).any() or (of_second[1:] < of_second[:-1]).any():
        return _pairs_in_turn(of_first.tolist(), of_second.tolist())
    keys = [_keys(part, len(ranks)) for part in (of_first, of_second)]
    union = np.union1d(*keys)
    places = []
    for key in keys:
        places.append(np.full(len(union), -1))
        places[-1][np.searchsorted(union, key)] = np.arange(len(key))
    return Merge(*places)


def ranks_of(indices: Array) -> Array:
    """The number of each index vector among the distinct ones in row-major order."""
    ranks = np.zeros(len(indices), np.int64)
    if len(indices):
        order = row_major(indices)
        starts = starts_of_runs(indices[order])
        ranks[order] = np.repeat(np.arange(len(starts)), lengths_of_runs(starts, len(indices)))
    return ranks


def _keys(ranks: Array, count: int) -> Array:
    """Distinct increasing numbers, the same for the same occurrence of a rank. `ranks` increase."""
    return ranks * (count + 1) + np.arange(len(ranks)) - np.searchsorted(ranks, ranks)


def _pairs_in_turn(first: list[int], second: list[int]) -> Merge:
    """The merge of ranks that are not in order: the lower one of the two heads is next, as TensorFlow takes them."""
    pairs = [*_heads(first, second)]
    return Merge(*np.array(pairs, np.int64).reshape(-1, 2).T)


def _heads(first: list[int], second: list[int]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(first) or j < len(second):
        takes_first = j == len(second) or (i < len(first) and first[i] <= second[j])
        takes_second = i == len(first) or (j < len(second) and second[j] <= first[i])
        yield i if takes_first else -1, j if takes_second else -1
        i += takes_first
        j += takes_second


def _check_equal(shape: Array, other_shape: Array) -> None:
    if (shape != other_shape).any():
        raise errors.InvalidArgument(f"the shapes of both operands must be equal, but are {shape.tolist()} and "
                                     f"{other_shape.tolist()}")


def add(_: Bind) -> Run:
    """SparseAdd. Sums of two elements below the threshold are no elements; NaN is below every threshold."""

    def run(a: Array, a_values: Array, shape: Array, b: Array, b_values: Array, b_shape: Array, limit: Array) -> Any:
        _check_equal(shape, b_shape)
        merged = merge(a, b)
        sums = merged.values(0, a_values) + merged.values(1, b_values)
        is_element = (np.abs(sums) >= limit) | (merged.first < 0) | (merged.second < 0)
        return merged.indices(a, b)[is_element], sums[is_element], shape.copy()

    return run


def add_gradient(_: Bind) -> Run:
    """SparseAddGrad: each element's gradient is that of the sum at its index, 0 where the sum has no element."""

    def run(gradient: Array, a: Array, b: Array, total: Array, a_out: Array, b_out: Array) -> None:
        for indices, out in ((a, a_out), (b, b_out)):
            out.fill(0)
            merged = merge(indices, total)
            both = (merged.first >= 0) & (merged.second >= 0)
            out[merged.first[both]] = gradient[merged.second[both]]

    return run


def extreme(ufunc: np.ufunc) -> Callable[[Bind], Run]:
    """The bind function of SparseSparseMaximum or SparseSparseMinimum. A missing element is 0."""

    def run(a: Array, a_values: Array, shape: Array, b: Array, b_values: Array, b_shape: Array) -> tuple[Array, Array]:
        _check_equal(shape, b_shape)
        check_inside(a, shape)
        check_inside(b, shape)
        merged = merge(a, b)
        return merged.indices(a, b), ufunc(merged.values(0, a_values), merged.values(1, b_values))

    return lambda _: run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SparseAdd", dtypes={"T": NUMBERS}, allocates=True)(add)
    kernels.kernel("SparseAddGrad", dtypes={"T": NUMBERS})(add_gradient)
    kernels.kernel("SparseSparseMaximum", dtypes={"T": REAL}, allocates=True)(extreme(np.maximum))
    kernels.kernel("SparseSparseMinimum", dtypes={"T": REAL}, allocates=True)(extreme(np.minimum))
