"""Kernels that cut sparse tensors into parts. The elements of a part keep their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import NUMBERS, Array
from .sparse_checks import check_inside
from .sparse_merges import ranks_of

Run = Callable[..., Any]


def slice_(_: Bind) -> Run:
    """SparseSlice. A size that reaches past the end is cut there, and elements past the end stay, as in TensorFlow."""

    def run(indices: Array, values: Array, shape: Array, start: Array, size: Array) -> tuple[Array, Array, Array]:
        if (shape < 0).any() or (size < 0).any():
            raise errors.InvalidArgument(f"shape and size must not be negative, given {shape.tolist()} and "
                                         f"{size.tolist()}")
        lengths = np.where(start < shape, np.minimum(size, shape - start), 0)
        places = indices - start
        is_inside = ((indices >= start) & (places < size)).all(1)
        return places[is_inside], values[is_inside], lengths

    return run


def slice_gradient(_: Bind) -> Run:
    """SparseSliceGrad: the gradients of the slice go to the elements that were in it, both in the same order."""

    def run(gradient: Array, indices: Array, start: Array, of_slice: Array, out: Array) -> None:
        ranks = ranks_of(np.concatenate([indices, of_slice + start]))
        sliced = ranks[len(indices) :]
        places = np.flatnonzero(np.isin(ranks[: len(indices)], sliced))
        if not np.array_equal(ranks[places], sliced):
            raise errors.InvalidArgument("the slice's indices are not those of input elements in the input's order")
        out.fill(0)
        out[places] = gradient

    return run


def split(b: Bind) -> Run:
    """SparseSplit. The first parts are longer by one where the length does not divide."""
    count = b.attrs["num_split"]

    def run(split_dim: Array, indices: Array, values: Array, shape: Array) -> tuple[Array, ...]:
        axis = _axis(int(split_dim), shape, count)
        check_inside(indices, shape)
        short, longer = divmod(int(shape[axis]), count)
        bounds = np.cumsum([0, *(short + (part < longer) for part in range(count))])
        part_of = np.searchsorted(bounds, indices[:, axis], "right") - 1
        parts = [np.flatnonzero(part_of == part) for part in range(count)]
        moved = [indices[part] for part in parts]
        for part, start in zip(moved, bounds, strict=False):
            part[:, axis] -= start
        lengths = np.tile(shape, (count, 1))
        lengths[:, axis] = np.diff(bounds)
        return *moved, *(values[part] for part in parts), *(row.copy() for row in lengths)

    return run


def _axis(axis: int, shape: Array, count: int) -> int:
    rank = len(shape)
    if not -rank <= axis < rank:
        raise errors.InvalidArgument(f"Input axis should be in range [{-rank}, {rank}), got {axis}")
    if count > shape[axis]:
        raise errors.InvalidArgument(f"Input num_split should be between 1 and the splitting dimension size "
                                     f"({shape[axis]}), got {count}")
    return axis % rank


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SparseSlice", allocates=True)(slice_)
    kernels.kernel("SparseSliceGrad", dtypes={"T": NUMBERS})(slice_gradient)
    kernels.kernel("SparseSplit", allocates=True)(split)
