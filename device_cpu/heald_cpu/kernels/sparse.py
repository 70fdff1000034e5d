"""Kernels on sparse tensors: indices [n, rank], values [n] and the dense shape [rank]."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import COMPLEX, FLOATS, NARROW, NUMBERS, REAL, Array
from .segment import add_rows, lengths_of_runs, starts_of_runs
from .sparse_checks import check_increasing, check_inside, row_major

Run = Callable[..., Any]


def sparse_to_dense(b: Bind) -> Run:
    lengths = np.array(b.outputs[0].dims, np.int64)
    steps = np.append(lengths[1:], 1)[::-1].cumprod()[::-1][: len(lengths)]
    validate = b.attrs["validate_indices"]

    def run(indices: Array, _: Array, values: Array, default: Array, out: Array) -> None:
        places = indices if indices.ndim == 2 else indices.reshape(-1, 1)
        check_inside(places, lengths)
        if validate:
            check_increasing(places)
        out.fill(default[()])
        out.reshape(-1)[places @ steps] = values

    return run


def sparse_reorder(_: Bind) -> Run:
    def run(indices: Array, values: Array, _: Array, out_indices: Array, out_values: Array) -> None:
        order = row_major(indices)
        np.copyto(out_indices, indices[order])
        np.copyto(out_values, values[order])

    return run


def sparse_reshape(_: Bind) -> Run:
    def run(indices: Array, shape: Array, new_shape: Array, out_indices: Array, out_shape: Array) -> None:
        source = shape.tolist()
        if min(source, default=0) < 0:
            raise errors.InvalidArgument(f"input_shape must not be negative, given {source}")
        out_shape[:] = target = _filled_in(prod(source), new_shape.tolist())
        check_inside(indices, shape)
        if source == target:
            np.copyto(out_indices, indices)
            return
        flat = np.zeros(len(indices), np.int64)
        for length, column in zip(source, indices.T, strict=True):
            flat = flat * length + column
        for i in reversed(range(len(target))):
            flat, out_indices[:, i] = np.divmod(flat, max(target[i], 1))

    return run


def _filled_in(size: int, target: list[int]) -> list[int]:
    """`target` with its -1 computed."""
    if size > np.iinfo(np.int64).max:
        raise errors.InvalidArgument(f"a dense tensor of {size} elements is too large")
    if min(target, default=0) < -1 or target.count(-1) > 1:
        raise errors.InvalidArgument(f"new_shape {target} must not be negative but for one -1")
    known_size = prod(length for length in target if length != -1)
    if -1 in target:
        if not known_size or size % known_size:
            raise errors.InvalidArgument(f"a tensor of {size} elements cannot have shape {target}")
        target[target.index(-1)] = size // known_size
    elif known_size != size:
        raise errors.InvalidArgument(f"a tensor of {size} elements cannot have shape {target}")
    return target


def sparse_concat(b: Bind) -> Run:
    parts = len(b.inputs) // 3
    axis = b.attrs["concat_dim"]

    def run(*arrays: Array) -> None:
        indices, values, shapes = (arrays[i * parts : (i + 1) * parts] for i in range(3))
        out_indices, out_values, out_shape = arrays[3 * parts :]
        lengths = np.stack(shapes)
        out_shape[:] = lengths[0]
        out_shape[axis] = lengths[:, axis].sum()
        if not (np.delete(lengths, axis, 1) == np.delete(out_shape, axis)).all():
            raise errors.InvalidArgument(f"shapes must be equal but along dimension {axis}, given {lengths.tolist()}")
        moved = np.concatenate(indices)
        starts = np.cumsum(lengths[:, axis]) - lengths[:, axis]
        moved[:, axis] += np.repeat(starts, [len(part) for part in indices])
        order = row_major(moved)
        np.copyto(out_indices, moved[order])
        np.copyto(out_values, np.concatenate(values)[order])

    return run


def sparse_fill_empty_rows(b: Bind) -> Run:
    def run(indices: Array, values: Array, shape: Array, default: Array) -> tuple[Array, ...]:
        rows = indices[:, 0]
        b.ask(int(shape[0]) * 8 * (indices.shape[1] + 1), "a tensor without empty rows")
        check_inside(rows[:, None], shape[:1])
        is_empty = np.bincount(rows, minlength=int(shape[0])) == 0
        missing = is_empty.nonzero()[0]
        if not missing.size and (rows[1:] >= rows[:-1]).all():
            return indices.copy(), values.copy(), is_empty, np.arange(len(rows))
        added = np.zeros((len(missing), indices.shape[1]), np.int64)
        added[:, 0] = missing
        order = np.concatenate([rows, missing]).argsort(kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        filled = np.concatenate([values, np.full(len(missing), default, values.dtype)])
        return np.concatenate([indices, added])[order], filled[order], is_empty, places[: len(rows)]

    return run


def sparse_softmax(b: Bind) -> Run:
    """SparseSoftmax over the elements that share all but the last index. The result is in row-major order."""
    narrow = b.outputs[0].dtype.name in NARROW

    def run(indices: Array, values: Array, _: Array, out: Array) -> None:
        if not values.size:
            return
        order = row_major(indices)
        starts = starts_of_runs(indices[order, :-1])
        counts = lengths_of_runs(starts, len(values))
        x = values[order].astype(np.float32) if narrow else values[order]
        x = np.exp(x - np.repeat(np.maximum.reduceat(x, starts), counts))
        out[...] = x / np.repeat(np.add.reduceat(x, starts), counts)

    return run


def sparse_dense_matmul(b: Bind) -> Run:
    adjoint_a, adjoint_b = b.attrs["adjoint_a"], b.attrs["adjoint_b"]
    assert b.inputs[2].value is not None
    shape = b.inputs[2].value
    dtype = b.outputs[0].dtype
    within = np.dtype(np.float32) if dtype.name in NARROW else dtype.numpy

    def run(indices: Array, values: Array, _: Array, dense: Array, out: Array) -> None:
        if not (out.size and dense.size):  # TensorFlow does not check the indices in this case
            out.fill(0)
            return
        check_inside(indices, shape)
        rows, columns = indices.T[:: -1 if adjoint_a else 1]
        order = rows.argsort(kind="stable")
        factors = (values.conj() if adjoint_a else values)[order, None]
        picked = (dense.conj().T if adjoint_b else dense)[columns[order]]
        out.fill(0)
        add_rows(factors.astype(within, copy=False) * picked, rows[order], out)

    return run


def sparse_reduction(ufunc: np.ufunc) -> Callable[[Bind], Run]:
    """The bind function of a reduction to a dense tensor. Elements without values are 0 for every reduction."""

    def bind(b: Bind) -> Run:
        wide = np.float32 if b.attrs["T"].name in NARROW else b.attrs["T"].numpy

        def run(indices: Array, values: Array, shape: Array, axes: Array, out: Array) -> None:
            check_inside(indices, shape)
            dropped = {axis % len(shape) for axis in axes.reshape(-1).tolist()}
            kept_axes = [axis for axis in range(len(shape)) if axis not in dropped]
            out.fill(0)
            if not len(values):
                return
            steps = np.append(shape[kept_axes][1:], 1)[::-1].cumprod()[::-1][: len(kept_axes)]
            places = indices[:, kept_axes] @ steps
            order = places.argsort(kind="stable")
            starts = starts_of_runs(places[order])
            out.reshape(-1)[places[order][starts]] = ufunc.reduceat(values[order].astype(wide), starts, dtype=wide)

        return run

    return bind


def sparse_reduction_to_sparse(ufunc: np.ufunc) -> Callable[[Bind], Run]:
    """The bind function of a reduction to a sparse tensor, which has an element for each group that has elements.

    TensorFlow leaves columns of the indices unwritten with `keep_dims`. Here a reduced axis has length 1 and index 0.
    """

    def bind(b: Bind) -> Run:
        wide = np.float32 if b.attrs["T"].name in NARROW else b.attrs["T"].numpy
        keep = b.attrs["keep_dims"]

        def run(indices: Array, values: Array, shape: Array, axes: Array) -> tuple[Array, Array, Array]:
            rank = len(shape)
            dropped = {_axis_in(axis, rank) for axis in axes.reshape(-1).tolist()}
            kept_axes = [axis for axis in range(rank) if axis not in dropped]
            groups = indices[:, kept_axes]
            order = row_major(groups)
            starts = starts_of_runs(groups[order]) if len(order) else order
            picked = order[starts]
            sums = ufunc.reduceat(values[order].astype(wide), starts, dtype=wide) if len(order) else values[order]
            if keep:
                reduced = list(dropped)
                out_indices, out_shape = indices[picked], shape.copy()
                out_indices[:, reduced], out_shape[reduced] = 0, 1
            else:
                out_indices, out_shape = groups[picked], shape[kept_axes]
            return out_indices, sums.astype(values.dtype), out_shape

        return run

    return bind


def _axis_in(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise errors.InvalidArgument(f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
    return axis % rank


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SparseReduceSum", dtypes={"T": NUMBERS})(sparse_reduction(np.add))
    kernels.kernel("SparseReduceMax", dtypes={"T": REAL})(sparse_reduction(np.maximum))
    for op, ufunc, types in (("SparseReduceSumSparse", np.add, NUMBERS), ("SparseReduceMaxSparse", np.maximum, REAL)):
        kernels.kernel(op, dtypes={"T": types}, allocates=True)(sparse_reduction_to_sparse(ufunc))
    for op, bind in {
        "SparseConcat": sparse_concat, "SparseReorder": sparse_reorder, "SparseReshape": sparse_reshape,
        "SparseSoftmax": sparse_softmax, "SparseToDense": sparse_to_dense,
    }.items():
        kernels.kernel(op)(bind)
    kernels.kernel("SparseTensorDenseMatMul", dtypes={"T": ("int32", *FLOATS, *COMPLEX)})(sparse_dense_matmul)
    kernels.kernel("SparseFillEmptyRows", allocates=True)(sparse_fill_empty_rows)
