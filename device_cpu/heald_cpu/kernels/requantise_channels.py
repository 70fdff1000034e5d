"""Kernels that requantise each channel by limits of its own, as graphs for Intel's library have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from ..quantised import F32, Levels, integers_of, single, to_int32

Run = Callable[..., None]
STEPS = F32(2.0**31)  # of a channel's largest number
LEAST_END = np.finfo(np.float32).tiny  # of a range, that of zeros too


def _largest(low: Array, high: Array) -> Array:
    """The larger size of both limits. As in C++, NaN is not less than a number."""
    sizes = np.abs(low), np.abs(high)
    return np.where(sizes[0] < sizes[1], sizes[1], sizes[0])


def requantization_range(b: Bind) -> Run:
    """The largest number of all channels, as both limits; the lower one is 0 without negative numbers.

    A channel with a number of about 2**31 does not count, as in TensorFlow: that size as a float32 is no int32.
    """
    limit = F32(b.attrs["clip_value_max"])

    def run(x: Array, low: Array, high: Array, low_out: Array, high_out: Array) -> None:
        if not x.size:
            raise errors.InvalidArgument("input must not be empty")
        integers = integers_of(x)
        least, greatest = integers.min((0, 1, 2), initial=0), integers.max((0, 1, 2), initial=0)
        sizes = to_int32(_largest(least.astype(F32), greatest.astype(F32))).astype(F32)
        ends = _largest(low, high) * sizes / STEPS
        end = min(np.fmax.reduce(ends, initial=LEAST_END), limit)
        low_out[...], high_out[...] = -end if (least < 0).any() else F32(0), end

    return run


def requantize(b: Bind) -> Run:
    levels = Levels.of(b.attrs["out_type"])
    lowest, highest = F32(levels.lowest), F32(levels.highest)

    def run(x: Array, low: Array, high: Array, new_low: Array, new_high: Array, *outs: Array) -> None:
        ends = single(new_low), single(new_high)
        if lowest and not ends[0] < 0:
            raise errors.InvalidArgument(f"requested_output_min must be negative for qint8, got {ends[0]}")
        scales = highest * (_largest(low, high) / _largest(*map(np.asarray, ends)) / STEPS)
        rounded: Any = np.rint(integers_of(x).astype(F32) * scales)
        clipped = np.minimum(np.fmax(rounded, lowest), highest)  # NaN becomes the lowest integer
        np.copyto(integers_of(outs[0]), clipped, casting="unsafe")
        outs[1][...], outs[2][...] = ends

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RequantizationRangePerChannel", dtypes={"T": "qint32"})(requantization_range)
    kernels.kernel("RequantizePerChannel", dtypes={"T": "qint32", "out_type": ("qint8", "quint8")})(requantize)
