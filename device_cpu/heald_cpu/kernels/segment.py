"""Kernels that reduce segments: the rows of a tensor that have the same id.

Rows of one id are made adjacent, unless they are already, and each run of them is reduced at once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, DType, Kernels, errors

from ..element_types import FLOATS, NARROW, NUMBERS, REAL, Array

Run = Callable[..., Any]
Scale = Callable[[Array], Array]  # from the number of rows in each segment to the divisor of their sum

FEW_ELEMENTS = 512

SORTED: tuple[tuple[str, np.ufunc, int, tuple[str, ...]], ...] = (  # op, function, value of an empty segment, types
    ("SegmentMax", np.maximum, 0, REAL),
    ("SegmentMin", np.minimum, 0, REAL),
    ("SegmentProd", np.multiply, 1, NUMBERS),
    ("SegmentSum", np.add, 0, NUMBERS),
)
UNSORTED: tuple[tuple[str, np.ufunc, int | str, tuple[str, ...]], ...] = (  # the value may name a limit of the type
    ("UnsortedSegmentMax", np.maximum, "min", REAL),
    ("UnsortedSegmentMin", np.minimum, "max", REAL),
    ("UnsortedSegmentProd", np.multiply, 1, NUMBERS),
    ("UnsortedSegmentSum", np.add, 0, NUMBERS),
)
SPARSE: tuple[tuple[str, Scale | None, tuple[str, ...]], ...] = (
    ("SparseSegmentMean", lambda count: count, FLOATS),
    ("SparseSegmentSqrtN", np.sqrt, FLOATS),
    ("SparseSegmentSum", None, REAL),
)


def register_kernels(kernels: Kernels) -> None:
    for op, ufunc, of_nothing, types in SORTED:
        kernels.kernel(op, dtypes={"T": types}, allocates=True)(sorted_segments(ufunc, of_nothing))
    kernels.kernel("SegmentMean", dtypes={"T": NUMBERS}, allocates=True)(segment_mean)
    for op, ufunc, loser, types in UNSORTED:
        kernels.kernel(op, dtypes={"T": types})(unsorted_segments(ufunc, loser))
    for op, scale, types in SPARSE:
        kernels.kernel(op, dtypes={"T": types}, allocates=True)(sparse_segments(scale))
        kernels.kernel(f"{op}WithNumSegments", dtypes={"T": types})(counted_sparse_segments(scale))


def sorted_segments(ufunc: np.ufunc, of_nothing: int) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        def run(data: Array, ids: Array) -> Array:
            out = _rows_for(b, data, _segments(ids))
            out.fill(of_nothing)
            if ufunc is np.add and _is_small(data):
                ufunc.at(out, ids, data)
            else:
                _reduce(ufunc, data, ids, out)
            return out

        return run

    return bind


def _is_small(data: Array) -> bool:
    """True if `ufunc.at`, which takes row by row, is faster than runs of rows: 1 us for 20 rows of 2 elements, where
    runs take 10. It adds in the type of the result."""
    is_narrow = data.dtype.itemsize <= 2 and data.dtype.kind in "fV"  # a name takes 2 us
    return (data.size == len(data) or data.size <= FEW_ELEMENTS) and not is_narrow


def _rows_for(b: Bind, data: Array, segments: int) -> Array:
    """An array, uninitialised, of one row for each segment."""
    b.ask(segments * prod(data.shape[1:]) * data.itemsize, "a tensor of segments")
    return np.empty((segments, *data.shape[1:]), data.dtype)


def segment_mean(b: Bind) -> Run:
    def run(data: Array, ids: Array) -> Array:
        out = _rows_for(b, data, _segments(ids))
        out.fill(0)
        _reduce(np.add, data, ids, out, lambda count: count)
        return out

    return run


def unsorted_segments(ufunc: np.ufunc, of_nothing: int | str) -> Callable[[Bind], Run]:
    """The start value takes part in every segment: a minimum of infinities alone is the largest finite number."""

    def bind(b: Bind) -> Run:
        dtype, row = b.outputs[0].dtype, b.outputs[0].dims[1:]
        rows = (b.inputs[1].size, *row)
        start = of_nothing if isinstance(of_nothing, int) else _limit(dtype, of_nothing)

        def run(data: Array, ids: Array, _: Array, out: Array) -> None:
            out.fill(start)
            if not data.size:
                return
            flat, data = ids.reshape(-1), data.reshape(rows)
            _check_below(flat, len(out))
            if _is_small(data) and flat.min() >= 0:
                ufunc.at(out, flat, data)
                return
            if flat[0] < 0 or (flat[1:] < flat[:-1]).any():
                order = flat.argsort(kind="stable")
                order = order[np.searchsorted(flat, 0, sorter=order) :]  # rows with negative ids are in no segment
                flat, data = flat[order], data[order]
            _reduce(ufunc, data, flat, out)
            ufunc(out, start, out=out)

        return run

    return bind


def sparse_segments(scale: Scale | None) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        def run(data: Array, indices: Array, ids: Array) -> Array:
            out = _rows_for(b, data, _segments(ids))
            out.fill(0)
            _reduce(np.add, _rows_at(data, indices), ids, out, scale)
            return out

        return run

    return bind


def counted_sparse_segments(scale: Scale | None) -> Callable[[Bind], Run]:
    def run(data: Array, indices: Array, ids: Array, _: Array, out: Array) -> None:
        _segments(ids)
        _check_below(ids, len(out))
        out.fill(0)
        _reduce(np.add, _rows_at(data, indices), ids, out, scale)

    return lambda _: run


def _segments(ids: Array) -> int:
    """The number of segments: the last of the sorted ids plus 1. Raises InvalidArgument for unsorted or negative
    ids."""
    if not ids.size:
        return 0
    if ids[0] < 0:
        raise errors.InvalidArgument(f"segment ids must be >= 0, given {ids[0]}")
    falls = ids[1:] < ids[:-1]
    if falls.any():
        raise errors.InvalidArgument(f"segment ids are not increasing after place {falls.argmax()}")
    return int(ids[-1]) + 1


def _check_below(ids: Array, count: int) -> None:
    if ids.size and ids.max() >= count:
        raise errors.InvalidArgument(f"segment_ids[{ids.argmax()}] = {ids.max()} is out of range [0, {count})")


def _rows_at(data: Array, indices: Array) -> Array:
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= len(data):  # negative ones are large here
        position = ((indices < 0) | (indices >= len(data))).argmax()
        raise errors.InvalidArgument(f"indices[{position}] == {indices[position]} out of range [0, {len(data)})")
    return data.take(indices, 0)


def add_rows(rows: Array, ids: Array, out: Array) -> None:
    """out[i] = the sum of the rows with id i, for each i in `ids`, which are sorted."""
    _reduce(np.add, rows, ids, out)


def starts_of_runs(rows: Array) -> Array:
    """The index of each row that differs from the previous one, and 0. `rows` has at least one row."""
    is_start = np.empty(len(rows), np.bool_)
    is_start[0] = True
    changes = rows[1:] != rows[:-1]
    is_start[1:] = changes.any(1) if rows.ndim == 2 else changes
    starts: Array = is_start.nonzero()[0]
    return starts


def lengths_of_runs(starts: Array, count: int) -> Array:
    """The number of rows in each run, of `count` rows in all."""
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = count - starts[-1:]
    return lengths


def _reduce(ufunc: np.ufunc, data: Array, ids: Array, out: Array, scale: Scale | None = None) -> None:
    """out[i] = `ufunc` over the rows of `data` with id i, for each i in `ids`, which are sorted."""
    if not ids.size:
        return
    starts = starts_of_runs(ids)
    counts = lengths_of_runs(starts, len(ids))
    rows = _reduce_runs(ufunc, data, starts, counts)
    out[ids[starts]] = rows if scale is None else _quotient(rows, scale(counts))


def _reduce_runs(ufunc: np.ufunc, data: Array, starts: Array, counts: Array) -> Any:
    """Each run of rows, reduced. NumPy's reduceat is fast for rows of one element, and for few. For 100,000 rows of 64
    elements in 1,000 runs it takes 28 ms, run by run takes 8 ms. For runs of 2 rows it takes 49 ms, all second rows at
    once take 7 ms."""
    within = np.dtype(np.float32) if data.dtype.name in NARROW else data.dtype
    if data.size == len(data) or data.size <= FEW_ELEMENTS:
        return ufunc.reduceat(data, starts, 0, within)
    if len(starts) <= counts.max():
        runs = zip(starts.tolist(), counts.tolist(), strict=True)
        return np.stack([ufunc.reduce(data[at : at + count], 0, within) for at, count in runs])
    return _reduced_side_by_side(ufunc, data, starts, counts, within)


def _reduced_side_by_side(ufunc: np.ufunc, data: Array, starts: Array, counts: Array, within: np.dtype[Any]) -> Any:
    """Reduces the second rows of all runs that have one, then the third rows, and so on. Long runs come first."""
    order = counts.argsort()[::-1]
    starts, counts = starts[order], counts[order]
    rows = data[starts].astype(within)
    next_rows = np.empty_like(rows, data.dtype)
    longer_runs = np.searchsorted(-counts, -np.arange(1, counts[0])).tolist()
    for offset, count in enumerate(longer_runs, 1):
        data.take(starts[:count] + offset, 0, next_rows[:count], "clip")  # no index is outside; "raise" would buffer
        ufunc(rows[:count], next_rows[:count], out=rows[:count])
    reduced = np.empty_like(rows)
    reduced[order] = rows
    return reduced


def _quotient(rows: Array, divisors: Array) -> Any:
    """Each row divided, integers toward zero, by a number of its own type, which wraps around, as in TensorFlow. Raises
    InvalidArgument if it wraps to 0."""
    row_divisors = divisors.astype(rows.dtype).reshape(-1, *(1,) * (rows.ndim - 1))
    if not row_divisors.all():
        raise errors.InvalidArgument(f"a segment of {divisors.max()} rows has no mean of type {rows.dtype}")
    return (rows - np.fmod(rows, row_divisors)) // row_divisors if rows.dtype.kind in "iu" else rows / row_divisors


def _limit(dtype: DType, which: str) -> Any:
    """The lowest or largest number of a type, for floats the finite one: TensorFlow's start value."""
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype.numpy), which)
    toward = {"min": -np.inf, "max": np.inf}[which]
    return np.nextafter(np.array(toward, dtype.numpy), np.array(0, dtype.numpy))
