"""Kernels that reorder a tensor's elements along dimensions, or rename dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from .const_inputs import integers

Run = Callable[..., None]


def reverse(b: Bind) -> Run:
    return _flip(b, tuple(integers(b, 1)))


def reverse_flagged(b: Bind) -> Run:
    return _flip(b, tuple(axis for axis, flag in enumerate(integers(b, 1)) if flag))


def _flip(b: Bind, axes: tuple[int, ...]) -> Run:
    index: list[Any] = [slice(None)] * len(b.inputs[0].meta.dims)
    for axis in axes if index else ():  # a scalar is its own reverse
        index[axis] = slice(None, None, -1)
    flip = (*index, ...)
    return lambda x, _axes, out: np.copyto(out, x[flip])


def reverse_sequence(b: Bind) -> Run:
    """ReverseSequence. Step s of a sequence of n steps comes from step n - 1 - s. Steps from n on stay."""
    axes = b.attrs["batch_dim"], b.attrs["seq_dim"]
    batch, limit = (b.inputs[0].meta.dims[axis] for axis in axes)
    rows, steps = np.arange(batch)[:, None], np.arange(limit)

    def run(x: Any, lengths: Any, out: Any) -> None:
        _check_lengths(lengths, limit)
        ends = lengths[:, None].astype(np.int64)
        source = np.where(steps < ends, ends - 1 - steps, steps)
        np.copyto(np.moveaxis(out, axes, (0, 1)), np.moveaxis(x, axes, (0, 1))[rows, source])

    return run


def _check_lengths(lengths: Any, limit: int) -> None:
    wrong = np.flatnonzero((lengths < 0) | (lengths > limit))
    if wrong.size:
        i = wrong[0]
        raise errors.InvalidArgument(f"seq_lengths[{i}] = {lengths[i]} is not in [0, {limit}]")


def roll(b: Bind) -> Run:
    shifts, axes = integers(b, 1), integers(b, 2)
    lengths = b.inputs[0].meta.dims
    turns = [shift % max(lengths[axis], 1) for shift, axis in zip(shifts, axes, strict=True)]
    return lambda x, _shift, _axis, out: np.copyto(out, np.roll(x, turns, axes))


def data_format_dim_map(b: Bind) -> Run:
    source, target = b.attrs["src_format"], b.attrs["dst_format"]
    rank = len(source)
    places = np.array([target.index(axis) for axis in source], b.outputs[0].dtype.numpy)

    def run(x: Any, out: Any) -> None:
        if ((x < -rank) | (x >= rank)).any():
            raise errors.InvalidArgument(f"dimensions must be in [{-rank}, {rank}), given {x.tolist()}")
        np.copyto(out, places[x])

    return run


def data_format_vec_permute(b: Bind) -> Run:
    source, target = b.attrs["src_format"], b.attrs["dst_format"]
    if b.inputs[0].meta.dims[0] < len(source):
        source, target = (text.replace("N", "").replace("C", "") for text in (source, target))
    order = [source.index(axis) for axis in target]
    return lambda x, out: np.copyto(out, x[order])


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "DataFormatDimMap": data_format_dim_map, "DataFormatVecPermute": data_format_vec_permute,
        "Reverse": reverse_flagged, "ReverseSequence": reverse_sequence, "ReverseV2": reverse, "Roll": roll,
    }.items():
        kernels.kernel(op)(bind)
