"""Kernels of ragged tensors as variants: map_fn takes ragged tensors apart into their rows, and stacks its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors, shape_text

from ..element_types import Array
from ..resources.handles import from_handle
from ..resources.ragged_tensor import RaggedTensor
from .ragged import check_whole

Run = Callable[..., Any]


def to_variant(b: Bind) -> Run:
    dtype = b.attrs["Tvalues"]
    if not b.attrs["batched_input"]:
        def run(*arrays: Array) -> None:
            *splits, values, out = arrays
            if splits:
                check_whole(splits, len(values))
            out.fill(RaggedTensor(dtype, tuple(splits), values))

        return run

    def run_batched(*arrays: Array) -> None:
        *splits, values, out = arrays
        if splits:
            check_whole(splits, len(values))
        for row in range(len(out)):
            first, last = (row, row + 1) if not splits else splits[0][row : row + 2].tolist()
            inner = []
            for level in splits[1:]:
                bounds = level[first : last + 1]
                inner.append(bounds - bounds[0])
                first, last = int(bounds[0]), int(bounds[-1])
            part = values[first:last] if splits else values[(row, ...)]
            out[row] = RaggedTensor(dtype, tuple(inner), part)

    return run_batched


def from_variant(b: Bind) -> Run:
    shape, dtype, splits_type = b.inputs[0].meta.dims, b.attrs["Tvalues"], b.attrs["Tsplits"].numpy
    below = b.attrs["output_ragged_rank"] - len(shape)  # ragged dimensions of each component; -1: they are stacked

    def run(encoded: Array) -> tuple[Array, ...]:
        parts = [from_handle(encoded[(*at, ...)], RaggedTensor) for at in np.ndindex(shape)]
        for part in parts:
            if part.dtype is not dtype:
                raise errors.InvalidArgument(f"Expected values Tensor dtype: {dtype}, found: {part.dtype}")
            if len(part.splits) != max(below, 0):
                raise errors.InvalidArgument(f"Encoded input RaggedTensorVariant has ragged_rank={len(part.splits)}. "
                                             f"Expected ragged_rank={max(below, 0)}.")
            if any(splits.dtype != splits_type for splits in part.splits):
                raise errors.InvalidArgument(f"Expected row_splits Tensor dtype: {splits_type}, found: "
                                             f"{part.splits[0].dtype}")
        if not shape:
            return *(splits.copy() for splits in parts[0].splits), parts[0].values.copy()
        b.ask(sum(part.values.nbytes for part in parts), "the values of ragged tensors")
        row_splits = []
        for i in range(1, len(shape)):
            b.ask(8 * prod(shape[:i]), "the splits of a ragged tensor")
            row_splits.append(np.arange(prod(shape[:i]) + 1) * shape[i])
        if below < 0:
            return *(splits.astype(splits_type) for splits in row_splits), _stack_values(parts, dtype.numpy)
        for level in range(-1, below):
            lengths = [_lengths(part, level) for part in parts]
            row_splits.append(np.append(0, np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]))))
        return *(splits.astype(splits_type) for splits in row_splits), _concat_values(parts, dtype.numpy)

    return run


def _lengths(part: RaggedTensor, level: int) -> Array:
    """The lengths of the rows at this level; at -1, the number of rows of the whole component."""
    if level >= 0:
        return np.diff(part.splits[level])
    if part.values.ndim == 0:
        raise errors.InvalidArgument("Ragged values must have rank >= 1, and a component is a scalar")
    return np.array([len(part.splits[0]) - 1 if part.splits else len(part.values)])


def _concat_values(parts: Sequence[RaggedTensor], dtype: np.dtype[Any]) -> Array:
    """The concatenated values. Raises InvalidArgument unless rows have one shape."""
    _check_shapes([part.values.shape[1:] for part in parts])
    return np.concatenate([part.values for part in parts]) if parts else np.zeros(0, dtype)


def _stack_values(parts: Sequence[RaggedTensor], dtype: np.dtype[Any]) -> Array:
    """The values with a new first dimension. Raises InvalidArgument unless they have one shape."""
    _check_shapes([part.values.shape for part in parts])
    return np.stack([part.values for part in parts]) if parts else np.zeros(0, dtype)


def _check_shapes(shapes: Sequence[tuple[int, ...]]) -> None:
    for index, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise errors.InvalidArgument(f"All flat_values must have compatible shapes. Shape at index 0: "
                                         f"{shape_text(shapes[0])}. Shape at index {index}: {shape_text(shape)}")


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RaggedTensorToVariant", retains=("rt_nested_splits", "rt_dense_values"))(to_variant)
    kernels.kernel("RaggedTensorFromVariant", allocates=True)(from_variant)
