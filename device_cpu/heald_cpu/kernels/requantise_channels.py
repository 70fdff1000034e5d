"""Kernels that requantise each channel by limits of its own, as graphs for Intel's library have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import Array
from ..quantised import F32, Levels, integers_of, single

Run = Callable[..., None]
STEPS = F32(2.0**31)  # of a channel's largest number


def _largest(low: Array, high: Array) -> Array:
    return np.maximum(np.abs(low), np.abs(high))


def requantization_range(b: Bind) -> Run:
    """The largest number of all channels, as both limits; the lower one is 0 without negative numbers."""
    limit = F32(b.attrs["clip_value_max"])

    def run(x: Array, low: Array, high: Array, low_out: Array, high_out: Array) -> None:
        integers = integers_of(x)
        least, greatest = integers.min((0, 1, 2), initial=0), integers.max((0, 1, 2), initial=0)
        scales = _largest(low, high) / STEPS
        ends = scales * _largest(least.astype(F32), greatest.astype(F32))
        end = min(F32(ends.max(initial=0)), limit)
        low_out[...], high_out[...] = -end if (least < 0).any() else F32(0), end

    return run


def requantize(b: Bind) -> Run:
    levels = Levels.of(b.attrs["out_type"])

    def run(x: Array, low: Array, high: Array, new_low: Array, new_high: Array, *outs: Array) -> None:
        ends = single(new_low), single(new_high)
        scales = F32(levels.highest) * (_largest(low, high) / _largest(*map(np.asarray, ends)) / STEPS)
        rounded: Any = np.rint(integers_of(x).astype(F32) * scales)
        np.copyto(integers_of(outs[0]), np.clip(rounded, levels.lowest, levels.highest), casting="unsafe")
        outs[1][...], outs[2][...] = ends

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RequantizationRangePerChannel", dtypes={"T": "qint32"})(requantization_range)
    kernels.kernel("RequantizePerChannel", dtypes={"T": "qint32", "out_type": ("qint8", "quint8")})(requantize)
