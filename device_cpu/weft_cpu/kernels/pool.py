"""Pooling kernels: along the width, then along the height, one ufunc call for each place in the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from weft.api import Bind, DType, Kernels, errors, geometry

from .staging import Scratched, compute_dtype, staged

Taps = list[tuple[slice, slice]]


def _taps(b: Bind) -> tuple[Taps, Taps]:
    """Along height and width: the outputs that each place in the window serves, and what they find there."""
    if b.attrs["data_format"] != "NHWC":
        raise errors.InvalidArgument(f"pooling on the CPU only supports NHWC, given {b.attrs['data_format']}")
    if b.attrs["ksize"][0] != 1 or b.attrs["strides"][0] != 1:
        raise errors.Unimplemented("pooling is not implemented for the batch dimension")
    lengths, sizes, strides = b.inputs[0].meta.dims[1:3], b.attrs["ksize"][1:3], b.attrs["strides"][1:3]
    windows = geometry.spatial_windows(b.attrs, lengths, sizes)
    rows, columns = (geometry.window_taps(*known) for known in zip(lengths, sizes, strides, windows, strict=True))
    return rows, columns


def _fold(ufunc: np.ufunc, start: Any, taps: tuple[Taps, Taps], x: Any, out: Any) -> Callable[[], None]:
    """Two passes need k + k calls where one needs k * k: 0.30 ms instead of 0.39 for 3x3 on 112x112x64."""
    rows, columns = taps
    between = np.empty((*x.shape[:2], *out.shape[2:]), x.dtype)
    passes = [(between[:, :, o], x[:, :, i]) for o, i in columns]
    second = [(out[:, o], between[:, i]) for o, i in rows]

    def run() -> None:
        between.fill(start)
        for target, source in passes:
            ufunc(target, source, out=target)
        out.fill(start)
        for target, source in second:
            ufunc(target, source, out=target)

    return run


def _lowest(dtype: DType) -> Any:
    """The least finite number; of a float type, the one next to minus infinity."""
    if dtype.kind != "f":
        return np.iinfo(dtype.numpy).min
    return np.nextafter(np.array(-np.inf, dtype.numpy), np.array(0, dtype.numpy))


def max_pool(b: Bind) -> Any:
    """NaN never wins, and what is below the lowest finite number (or NaN alone) gives that: TensorFlow's start."""
    taps, dtype = _taps(b), b.attrs["T"]
    lowest = _lowest(dtype)
    larger: np.ufunc = np.fmax if dtype.kind == "f" else np.maximum
    if b.attrs["ksize"][3] > 1:
        return _max_pool_depth(b, larger, b.attrs["ksize"][3])
    return staged(b, Scratched(lambda ins, outs: _fold(larger, lowest, taps, *ins, *outs)))


def _max_pool_depth(b: Bind, larger: np.ufunc, depth: int) -> Any:
    """Here NaN among NaN stays, and there is no lowest start."""
    if b.attrs["ksize"][1:3] != (1, 1):
        raise errors.Unimplemented("pooling across both depth and width or height is not implemented")
    if b.inputs[0].meta.dims[3] % depth or b.attrs["strides"][3] != depth:
        raise errors.Unimplemented("a depth window must divide the depth and equal its stride")

    def attach(x: Any, out: Any) -> Callable[[], None]:
        groups = x.reshape(*out.shape, depth)
        return lambda: larger.reduce(groups, axis=-1, out=out)

    return staged(b, Scratched(lambda ins, outs: attach(*ins, *outs)))


def avg_pool(b: Bind) -> Any:
    taps = _taps(b)
    if b.attrs["ksize"][3] != 1 or b.attrs["strides"][3] != 1:
        raise errors.Unimplemented("average pooling across the depth is not implemented")
    dtype = compute_dtype(b)
    down, across = (_counts(t, n) for t, n in zip(taps, b.outputs[0].dims[1:3], strict=True))
    count = np.multiply.outer(down, across)[:, :, None].astype(dtype)

    def attach(x: Any, out: Any) -> Callable[[], None]:
        total = _fold(np.add, 0, taps, x, out)

        def run() -> None:
            total()
            np.divide(out, count, out=out)

        return run

    return staged(b, Scratched(lambda ins, outs: attach(*ins, *outs)))


def _counts(taps: Taps, size: int) -> Any:
    """For each output along one axis, how many elements its window covers: padding does not count."""
    counts = np.zeros(size, int)
    for outputs, _ in taps:
        counts[outputs] += 1
    return counts


def register(kernels: Kernels) -> None:
    kernels.kernel("MaxPool")(max_pool)
    kernels.kernel("AvgPool")(avg_pool)
