"""Kernels on ragged tensors: flat values, and for each ragged dimension the ends of its rows (splits)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array

Run = Callable[..., Any]


def ragged_range(b: Bind) -> Run:
    splits_type, dtype = b.attrs["Tsplits"].numpy, b.attrs["T"]
    count, numbers = (_integer_steps, _integers) if dtype.kind in "iu" else (_float_steps, _floats)

    def run(*bounds: Array) -> tuple[Array, Array]:
        starts, limits, deltas = np.broadcast_arrays(*(np.atleast_1d(x) for x in bounds))
        if not deltas.all():
            raise errors.InvalidArgument("Requires delta != 0")
        sizes = count(starts, limits, deltas)
        sizes[(deltas > 0) & (limits < starts) | (deltas < 0) & (limits > starts)] = 0
        total = sum(sizes.tolist())
        if not total <= np.iinfo(splits_type).max:
            raise errors.InvalidArgument(f"ranges of {total} elements in all do not fit splits of type {splits_type}")
        lengths = sizes.astype(np.int64)
        b.ask(total * starts.itemsize, "a tensor of ranges")
        return np.append(0, np.cumsum(lengths)).astype(splits_type), numbers(starts, deltas, lengths)

    return run


def _integer_steps(starts: Array, limits: Array, deltas: Array) -> Any:
    """The number of steps, computed with unsigned numbers, whose differences do not overflow."""
    wide = np.uint64
    span = np.maximum(starts, limits).astype(wide) - np.minimum(starts, limits).astype(wide)
    step = np.where(deltas < 0, 0 - deltas.astype(wide), deltas.astype(wide))
    return span // step + (span % step != 0)


def _float_steps(starts: Array, limits: Array, deltas: Array) -> Array:
    return np.ceil(np.abs((limits - starts) / deltas))


def _integers(starts: Array, deltas: Array, lengths: Array) -> Any:
    return np.repeat(starts, lengths) + (_places(lengths) * np.repeat(deltas, lengths)).astype(starts.dtype)


def _floats(starts: Array, deltas: Array, lengths: Array) -> Array:
    """The numbers of each range: each is the rounded sum of the previous one and delta."""
    numbers = np.repeat(deltas, lengths)
    ends = np.cumsum(lengths)
    for start, first, end in zip(starts, ends - lengths, ends, strict=True):
        numbers[first : first + 1] = start
        np.add.accumulate(numbers[first:end], out=numbers[first:end])
    return numbers


def _places(lengths: Array) -> Any:
    """0, 1, ... in rows of these lengths."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def ragged_gather(b: Bind) -> Run:
    shape = b.inputs[-1].meta.dims
    outer = [np.arange(prod(shape[:i]) + 1) * shape[i] for i in range(1, len(shape))]

    def run(*inputs: Array) -> tuple[Array, ...]:
        *levels, values, indices = inputs
        _check_bounds(levels, len(values))
        picks = indices.reshape(-1)
        _check_indices(picks, len(levels[0]) - 1)
        all_splits = list(outer)
        for splits in levels:
            lengths = splits[picks + 1] - splits[picks]
            all_splits.append(np.append(0, np.cumsum(lengths)))
            b.ask(int(all_splits[-1][-1]) * 8, "an index of rows")
            picks = np.repeat(splits[picks], lengths) + _places(lengths)
        b.ask(len(picks) * values[:1].nbytes, "a tensor of gathered rows")
        nested = all_splits[1:] if not shape else all_splits
        return *(splits.astype(levels[0].dtype) for splits in nested), values[picks]

    return run


def _check_indices(indices: Array, rows: int) -> None:
    outside = (indices < 0) | (indices >= rows)
    if outside.any():
        position = outside.argmax()
        raise errors.InvalidArgument(f"indices[{position}] = {indices[position]} is not in [0, {rows})")


def _check_bounds(levels: list[Array], count: int) -> None:
    """Raise InvalidArgument if splits decrease, or name rows that the next level, or the values, do not have."""
    for splits, rows in zip(levels, [*(len(inner_splits) - 1 for inner_splits in levels[1:]), count], strict=True):
        if splits[0] < 0 or (splits[1:] < splits[:-1]).any():
            raise errors.InvalidArgument("ragged splits must be sorted, and not negative")
        if splits[-1] > rows:
            raise errors.InvalidArgument(f"ragged splits must not point past values: {splits[-1]} > {rows}")


def ragged_to_sparse(b: Bind) -> Run:
    inner = b.inputs[-1].meta.dims[1:]
    within = np.indices(inner).reshape(len(inner), prod(inner))

    def run(*arrays: Array) -> None:
        *levels, values, indices, out_values, shape = arrays
        check_whole(levels, len(values))
        index, lengths = np.arange(len(levels[0]) - 1)[:, None], [len(levels[0]) - 1]
        for splits in levels:
            sizes = np.diff(splits)
            index = np.column_stack([index.repeat(sizes, 0), _places(sizes)])
            lengths.append(sizes.max(initial=0))
        rank = index.shape[1]
        indices[:, :rank] = index.repeat(within.shape[1], 0)
        indices[:, rank:] = np.tile(within.T, (len(values), 1))
        np.copyto(out_values, values.reshape(-1))
        shape[:] = [*lengths, *inner]

    return run


def check_whole(levels: list[Array], count: int) -> None:
    """Raise InvalidArgument unless the splits of each level divide all of the next, or all values."""
    _check_bounds(levels, count)
    for splits, rows in zip(levels, [*(len(inner_splits) - 1 for inner_splits in levels[1:]), count], strict=True):
        if splits[0] != 0 or splits[-1] != rows:
            raise errors.InvalidArgument(f"ragged splits must go from 0 to {rows}, the number of values, not from "
                                         f"{splits[0]} to {splits[-1]}")


def ragged_to_tensor(b: Bind) -> Run:
    kinds = b.attrs["row_partition_types"]
    sized = kinds[0] == "FIRST_DIM_SIZE"
    levels = [_row_ids if kind == "VALUE_ROWIDS" else _rows_of_splits for kind in kinds[sized:]]
    output_shape, inner = b.outputs[0].shape, b.inputs[1].meta.dims[1:]
    assert output_shape is not None

    def run(_: Array, values: Array, default: Array, *partitions: Array) -> Array:
        for kind, partition in zip(kinds, partitions, strict=True):
            _check_partition(kind, partition)
        first = int(partitions[0].reshape(())) if sized else len(partitions[0]) - 1
        b.ask(8 * first, "an index of rows")
        rows: list[Array] = []
        for level, partition in zip(levels, partitions[sized:], strict=True):
            parents = len(rows[-1]) if rows else first
            if level is _rows_of_splits:
                b.ask(8 * max(int(partition[-1]), 0), "an index of rows")
            rows.append(level(partition, parents))
        places = [np.arange(len(row)) - np.searchsorted(row, row) for row in rows]
        widths = [first, *(int(columns.max(initial=-1)) + 1 for columns in places)]
        lengths = [width if length is None else length for width, length in zip(widths, output_shape, strict=False)]
        index = _flat_index(first, rows, places, lengths)[: len(values)]
        b.ask(prod(lengths) * prod(inner) * values.itemsize, "a tensor of padded rows")
        out = np.empty((prod(lengths), *inner), values.dtype)
        out[...] = default
        out[index[index >= 0]] = values[: len(index)][index >= 0]
        return out.reshape(*lengths, *inner)

    return run


def _check_partition(kind: str, partition: Array) -> None:
    """Raise InvalidArgument for a partition of the wrong rank, splits without elements, and a negative size."""
    rank = 0 if kind == "FIRST_DIM_SIZE" else 1
    if partition.ndim != rank:
        raise errors.InvalidArgument(f"a partition of {kind} must have rank {rank}, given {partition.ndim}")
    if kind == "ROW_SPLITS" and not len(partition):
        raise errors.InvalidArgument("row splits must have at least one element")
    if kind == "FIRST_DIM_SIZE" and partition < 0:
        raise errors.InvalidArgument(f"the first dimension must not be negative, given {partition}")


def _row_ids(ids: Array, parents: int) -> Array:
    """The row of each value by VALUE_ROWIDS. Raises InvalidArgument."""
    if ids.size and (ids.min() < 0 or ids.max() >= parents or (ids[1:] < ids[:-1]).any()):
        raise errors.InvalidArgument(f"value rowids must be sorted and in [0, {parents})")
    return ids


def _rows_of_splits(splits: Array, parents: int) -> Array:
    """The row of each value by ROW_SPLITS. Raises InvalidArgument."""
    if splits[0] != 0 or (splits[1:] < splits[:-1]).any() or len(splits) - 1 > parents:
        raise errors.InvalidArgument(f"row splits must be sorted, from 0 on, for at most {parents} rows")
    return np.repeat(np.arange(len(splits) - 1), np.diff(splits))


def _flat_index(first: int, rows: list[Array], places: list[Array], lengths: list[int]) -> Array:
    """The index of each value in a flattened tensor of these lengths; -1 for a value that does not fit."""
    index = np.arange(first)
    index[lengths[0] :] = -1
    for row, column, length in zip(rows, places, lengths[1:], strict=True):
        above = index[row]
        index = np.where((above >= 0) & (column < length), above * length + column, -1)
    return index


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RaggedGather", allocates=True)(ragged_gather)
    kernels.kernel("RaggedRange", dtypes={"T": ("int32", "int64", "float32", "float64")}, allocates=True)(ragged_range)
    kernels.kernel("RaggedTensorToSparse")(ragged_to_sparse)
    kernels.kernel("RaggedTensorToTensor", allocates=True)(ragged_to_tensor)
