"""Kernels that count elements by their value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from weft.api import Bind, Kernels, errors

from .element_types import Array

Run = Callable[..., None]


def bincount(b: Bind) -> Run:
    """Bincount of all elements, DenseBincount of each row; what is not below the size is not counted."""
    bins = b.outputs[0].dims[-1]
    rows = b.outputs[0].size // bins if bins else 0
    weighted, binary = b.inputs[2].size > 0, b.attrs.get("binary_output", False)

    def run(x: Array, _: Array, weights: Array, out: Array) -> None:
        if (x < 0).any():
            raise errors.InvalidArgument(f"Input must be non-negative, but has {x.min()}")
        out.fill(0)
        if not rows:
            return
        flat = x.reshape(rows, -1)
        row, column = np.nonzero(flat < bins)
        place, target = (row, flat[row, column]), out.reshape(rows, bins)
        if binary:
            target[place] = 1
        else:
            np.add.at(target, place, weights.reshape(flat.shape)[row, column] if weighted else 1)

    return run


def histogram(b: Bind) -> Run:
    """Bins of equal width; what lies outside the range is counted in the first and last."""
    bins = b.outputs[0].size

    def run(values: Array, value_range: Array, _: Array, out: Array) -> None:
        low, high = value_range
        if not low < high:
            raise errors.InvalidArgument(f"value_range[0] < value_range[1] should hold, given {value_range}")
        step = np.float64(high - low) / bins
        places = (np.maximum(values.reshape(-1), low) - low).astype(np.float64) / step
        out[...] = np.bincount(np.minimum(places, bins - 1).astype(np.int64), minlength=bins)

    return run


def register(kernels: Kernels) -> None:
    kernels.kernel("Bincount")(bincount)
    kernels.kernel("DenseBincount")(bincount)
    kernels.kernel("HistogramFixedWidth")(histogram)
