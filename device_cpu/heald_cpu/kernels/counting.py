"""Kernels that count elements by their value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from .ragged import check_whole

Run = Callable[..., None]


def bincount(b: Bind) -> Run:
    """Bincount counts all elements, DenseBincount each row's. Elements of `size` or more are not counted."""
    bins, size = b.outputs[0].dims[-1], b.outputs[0].size
    firsts = np.arange(0, size, bins)[:, None] if size else None  # the first bin of each row
    weighted, binary = b.inputs[2].size > 0, b.attrs.get("binary_output", False)

    def run(x: Array, _: Array, weights: Array, out: Array) -> None:
        if (x < 0).any():
            raise errors.InvalidArgument(f"Input must be non-negative, but has {x.min()}")
        if firsts is None:
            return
        rows, counts = x.reshape(len(firsts), -1), out.reshape(-1)
        counted = rows < bins
        places = (rows + firsts)[counted]
        if not weighted and not binary:
            counts[:] = np.bincount(places, minlength=size)
            return
        counts.fill(0)
        if binary:
            counts[places] = 1
        else:
            np.add.at(counts, places, weights.reshape(rows.shape)[counted])

    return run


def ragged_bincount(b: Bind) -> Run:
    """Counts in each row of a ragged tensor, as DenseBincount does."""
    bins, weighted, binary = b.outputs[0].dims[-1], b.inputs[3].size > 0, b.attrs["binary_output"]

    def run(splits: Array, x: Array, _: Array, weights: Array, out: Array) -> None:
        values = x.reshape(-1)
        if (values < 0).any():
            raise errors.InvalidArgument(f"Input must be non-negative, but has {x.min()}")
        check_whole([splits], len(values))
        row, counted = np.repeat(np.arange(len(out)), np.diff(splits)), values < bins
        out.fill(0)
        at = row[counted], values[counted]
        if binary:
            out[at] = 1
        else:
            np.add.at(out, at, weights.reshape(-1)[counted] if weighted else out.dtype.type(1))

    return run


def histogram(b: Bind) -> Run:
    """Counts in bins of equal width. The first and last bin count the elements outside the range, too."""
    bins = b.outputs[0].size

    def run(values: Array, value_range: Array, _: Array, out: Array) -> None:
        low, high = value_range.astype(np.float64)
        if not low < high:
            raise errors.InvalidArgument(f"value_range[0] < value_range[1] should hold, given {value_range}")
        places = (np.maximum(values.reshape(-1), low) - low) / ((high - low) / bins)
        if bins > 1 and np.isnan(places).any():
            raise errors.InvalidArgument("NaN has no place among several bins")
        out[...] = np.bincount(np.fmin(places, bins - 1).astype(np.int64), minlength=bins)

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Bincount")(bincount)
    kernels.kernel("DenseBincount")(bincount)
    kernels.kernel("RaggedBincount")(ragged_bincount)
    kernels.kernel("HistogramFixedWidth")(histogram)
