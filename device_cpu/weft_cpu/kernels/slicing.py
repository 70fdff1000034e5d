"""Kernels that take a part of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from weft.api import Bind, Kernels, errors, geometry

from .staging import nothing

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
Run = Callable[..., None]


def _ints(b: Bind, index: int) -> list[int]:
    value = b.inputs[index].value
    assert value is not None
    return [int(v) for v in value.reshape(-1)]


def strided_slice(b: Bind) -> Run:
    masks = {mask: b.attrs[mask] for mask in MASKS}
    found = geometry.strided_slice(b.inputs[0].meta.dims, _ints(b, 1), _ints(b, 2), _ints(b, 3), **masks)
    assert found.index is not None
    index = (*found.index, ...)  # the ellipsis makes a view of a single element too
    return lambda x, _begin, _end, _strides, out: np.copyto(out, x[index])


def slice_(b: Bind) -> Run:
    index = (*(slice(at, at + n) for at, n in zip(_ints(b, 1), b.outputs[0].dims, strict=True)), ...)
    return lambda x, _begin, _size, out: np.copyto(out, x[index])


def unpack(b: Bind) -> Run:
    axis = b.attrs["axis"]

    def run(x: Any, *outs: Any) -> None:
        for out, part in zip(outs, np.moveaxis(x, axis, 0), strict=True):
            np.copyto(out, part)

    return run


def split(b: Bind) -> Run:
    (axis,) = _ints(b, 0)

    def run(_split_dim: Any, x: Any, *outs: Any) -> None:
        for out, part in zip(outs, np.split(x, len(outs), axis), strict=True):
            np.copyto(out, part)

    return run


def gather(b: Bind) -> Run:
    params, indices = (x.meta.dims for x in b.inputs[:2])
    axis = _ints(b, 2)[0] % len(params)
    batch = b.attrs["batch_dims"]
    batch += len(indices) if batch < 0 else 0
    length, count = params[axis], prod(params[:batch])
    source = (count, prod(params[batch:axis]), length, prod(params[axis + 1 :]))
    picks = prod(indices[batch:])
    target = (*source[:2], picks, source[3])
    if b.outputs[0].size == 0:
        return nothing
    row = np.arange(count)[:, None]

    def run(params: Any, indices: Any, _axis: Any, out: Any) -> None:
        _check_inside(indices, length)
        if count == 1:
            np.take(params.reshape(source[1:]), indices.reshape(-1), 1, out=out.reshape(target[1:]), mode="clip")
        else:
            found = params.reshape(source)[row, :, indices.reshape(count, picks)]
            np.copyto(out.reshape(target), found.swapaxes(1, 2))

    return run


def _check_inside(indices: Any, length: int) -> None:
    if indices.min() < 0 or indices.max() >= length:
        place = np.unravel_index(np.argmax((indices < 0) | (indices >= length)), indices.shape)
        where = ",".join(str(i) for i in place)
        raise errors.InvalidArgument(f"indices[{where}] = {indices[place]} is not in [0, {length})")


def register(kernels: Kernels) -> None:
    for op, bind in {
        "GatherV2": gather, "Slice": slice_, "Split": split, "StridedSlice": strided_slice, "Unpack": unpack,
    }.items():
        kernels.kernel(op)(bind)
