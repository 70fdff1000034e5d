"""Kernels that take a part of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, geometry

from ..element_types import zero
from .const_inputs import integers
from .index_checks import check_inside
from .staging import nothing

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
Run = Callable[..., None]


def strided_slice(b: Bind) -> Run:
    shape = b.inputs[0].meta.dims
    index = _slice_index(b, shape)

    def run(x: Any, _begin: Any, _end: Any, _strides: Any, out: Any) -> None:
        np.copyto(out, x[index])

    axes = [at for at in index[:-1] if at is not None]
    axes += [slice(None)] * (len(shape) - len(axes))
    picked = [range(n)[at] if isinstance(at, slice) else range(at % n, at % n + 1)
              for at, n in zip(axes, shape, strict=True)]
    if any(axis.step != 1 and len(axis) > 1 for axis in picked):
        return run
    return _showing(run, b, 0, [[axis.start for axis in picked]], tuple(map(len, picked)))


def strided_slice_grad(b: Bind) -> Run:
    index, blank = _slice_index(b, b.outputs[0].dims), zero(b.outputs[0].dtype)

    def run(_shape: Any, _begin: Any, _end: Any, _strides: Any, dy: Any, out: Any) -> None:
        out.fill(blank)
        out[index] = dy

    return run


def tensor_strided_slice_update(b: Bind) -> Run:
    index = _slice_index(b, b.inputs[0].meta.dims)

    def run(x: Any, _begin: Any, _end: Any, _strides: Any, value: Any, out: Any) -> None:
        np.copyto(out, x)
        if out[index].size:
            out[index] = value

    return run


def _slice_index(b: Bind, shape: tuple[int, ...]) -> tuple[Any, ...]:
    masks = {mask: b.attrs[mask] for mask in MASKS}
    window = geometry.strided_slice(shape, integers(b, 1), integers(b, 2), integers(b, 3), **masks)
    assert window.index is not None
    return (*window.index, ...)  # the ellipsis makes a view of a single element too


def slice_(b: Bind) -> Run:
    index = (*(slice(at, at + n) for at, n in zip(integers(b, 1), b.outputs[0].dims, strict=True)), ...)
    return _showing(lambda x, _begin, _size, out: np.copyto(out, x[index]), b, 0, [integers(b, 1)])


def unpack(b: Bind) -> Run:
    axis = b.attrs["axis"]

    def run(x: Any, *outs: Any) -> None:
        for out, part in zip(outs, np.moveaxis(x, axis, 0), strict=True):
            np.copyto(out, part)

    dims = b.inputs[0].meta.dims
    at = axis % len(dims)
    return _showing(run, b, 0, [(*(0,) * at, i, *(0,) * (len(dims) - at - 1)) for i in range(dims[at])],
                    (*dims[:at], 1, *dims[at + 1 :]))


def split(b: Bind) -> Run:
    parts = _parts(b, *integers(b, 0))

    def run(_split_dim: Any, x: Any, *outs: Any) -> None:
        for out, part in zip(outs, parts, strict=True):
            np.copyto(out, x[part])

    return _showing(run, b, 1, _begins(b, parts))


def split_v(b: Bind) -> Run:
    parts = _parts(b, *integers(b, 2))

    def run(x: Any, _size_splits: Any, _split_dim: Any, *outs: Any) -> None:
        for out, part in zip(outs, parts, strict=True):
            np.copyto(out, x[part])

    return _showing(run, b, 0, _begins(b, parts))


def _begins(b: Bind, parts: Sequence[tuple[slice, ...]]) -> list[tuple[int, ...]]:
    rank = len(b.outputs[0].dims)
    return [(*(at.start or 0 for at in part), *(0,) * (rank - len(part))) for part in parts]


def _showing(
    run: Run, b: Bind, source: int, begins: Sequence[Sequence[int]], dims: tuple[int, ...] | None = None
) -> Run:
    """Return the run function, with `shows` where each output is a run of elements of the input, without gaps.

    `begins`: the index of each output's first element; `dims`: the shape of each output in the input, if not its own.
    """
    whole = b.inputs[source].meta.dims
    for meta in b.outputs:
        part = meta.dims if dims is None else dims
        first = next((axis for axis, length in enumerate(part) if length != 1), len(part))
        if part[first + 1 :] != whole[first + 1 :]:
            return run
    steps = [prod(whole[axis + 1 :]) for axis in range(len(whole))]
    run.shows = {output: (source, sum(at * step for at, step in zip(begin, steps, strict=True)))  # type: ignore[attr-defined]
                 for output, begin in enumerate(begins)}
    return run


def _parts(b: Bind, axis: int) -> list[tuple[slice, ...]]:
    """The index of each output in the input that is split along `axis`."""
    lengths = [meta.dims[axis] for meta in b.outputs]
    before = (slice(None),) * (axis % len(b.outputs[0].dims))
    return [(*before, slice(end - length, end)) for length, end in zip(lengths, accumulate(lengths), strict=True)]


def gather(b: Bind) -> Run:
    """Gather is GatherV2 along the first axis."""
    params, indices = (x.meta.dims for x in b.inputs[:2])
    axis = integers(b, 2)[0] % len(params) if b.op == "GatherV2" else 0
    batch = b.attrs.get("batch_dims", 0)
    batch += len(indices) if batch < 0 else 0
    length, count = params[axis], prod(params[:batch])
    source = (count, prod(params[batch:axis]), length, prod(params[axis + 1 :]))
    picks = prod(indices[batch:])
    target = (*source[:2], picks, source[3])
    if b.outputs[0].size == 0:
        return nothing
    if count == picks == 1:
        return _gather_one(source[1:])
    if batch == 0:
        return _gather_without_batch(axis, length)
    row = np.arange(count)[:, None]

    def run(params: Any, indices: Any, *axis_and_out: Any) -> None:
        out = axis_and_out[-1]
        check_inside(indices, length)
        if count == 1:
            np.take(params.reshape(source[1:]), indices.reshape(-1), 1, out=out.reshape(target[1:]), mode="clip")
        else:
            gathered = params.reshape(source)[row, :, indices.reshape(count, picks)]
            np.copyto(out.reshape(target), gathered.swapaxes(1, 2))

    return run


def _gather_without_batch(axis: int, length: int) -> Run:
    """Gather of indices that are all for the same elements, without views of another shape."""

    def run(params: Any, indices: Any, *axis_and_out: Any) -> None:
        check_inside(indices, length)
        params.take(indices, axis, axis_and_out[-1], "clip")

    return run


def _gather_one(source: tuple[int, int, int]) -> Run:
    """Gather for a single index, as in a loop: the general form takes four times as long."""
    before, length, behind = source

    def run(params: Any, indices: Any, *axis_and_out: Any) -> None:
        index = indices.item()
        if not 0 <= index < length:
            check_inside(indices, length)
        np.copyto(axis_and_out[-1].reshape(before, behind), params.reshape(source)[:, index])

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "Gather": gather, "GatherV2": gather, "Slice": slice_, "Split": split, "SplitV": split_v,
        "StridedSlice": strided_slice, "StridedSliceGrad": strided_slice_grad,
        "TensorStridedSliceUpdate": tensor_strided_slice_update, "Unpack": unpack,
    }.items():
        kernels.kernel(op)(bind)
