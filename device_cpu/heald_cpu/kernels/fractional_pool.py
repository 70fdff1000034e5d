"""Pooling into regions of unequal sizes, which the paper of B. Graham draws at random: arXiv:1412.6071.

A pooling sequence has the first row, or column, of each region, and the number of all rows behind them. Regions that
overlap have the first row of the next one, too. The seeds make TensorFlow's sequences.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from itertools import accumulate, islice, pairwise
from math import ceil
from typing import Any

import numpy as np
from heald.api import Attrs, Bind, Kernels, errors

from ..element_types import Array
from ..philox import MASK64, below, words

Run = Callable[..., None]
Reduce = Callable[[Array, int], Array]  # of a region, along an axis
TYPES = ("float32", "float64", "int32", "int64")
WORDS_OF_BLOCK = 4
MANTISSA = (1 << 52) - 1


def pool(is_average: bool) -> Callable[[Bind], Run]:
    def bind(b: Bind) -> Run:
        overlaps = b.attrs["overlapping"]
        lengths, counts = b.inputs[0].meta.dims[1:3], b.outputs[0].dims[1:3]
        draw = _sequences(b.attrs, lengths, counts)

        def run(x: Array, out: Array, rows: Array, columns: Array) -> None:
            rows[...], columns[...] = draw()
            regions = (_regions(rows, counts[0], lengths[0], overlaps),
                       _regions(columns, counts[1], lengths[1], overlaps))
            if not is_average:
                _reduce(_largest, x, *regions, out)
                return
            wide = np.empty(out.shape, np.float64 if x.dtype.kind == "f" else np.int64)
            _reduce(lambda region, axis: region.sum(axis, dtype=wide.dtype), x, *regions, wide)
            heights, widths = (np.array([end - start for start, end in axis]) for axis in regions)
            sizes = heights[:, None, None] * widths[:, None]
            if x.dtype.kind == "i":  # sums wrap around, as in TensorFlow
                wide = wide.astype(x.dtype).astype(np.int64)
            out[...] = wide / sizes if x.dtype.kind == "f" else _truncated_quotient(wide, sizes)

        return run

    return bind


def _largest(region: Array, axis: int) -> Any:
    """The largest of the region's numbers and the least finite one, without NaN."""
    limits = np.finfo(region.dtype) if region.dtype.kind == "f" else np.iinfo(region.dtype)
    return np.fmax.reduce(region, axis, initial=limits.min)


def _truncated_quotient(x: Array, y: Array) -> Any:
    return np.sign(x) * (np.abs(x) // y)


def _reduce(reduce: Reduce, x: Array, rows: list[tuple[int, int]], columns: list[tuple[int, int]], out: Array) -> None:
    for i, (top, bottom) in enumerate(rows):
        row = reduce(x[:, top:bottom], 1)
        for j, (left, right) in enumerate(columns):
            out[:, i, j] = reduce(row[:, left:right], 1)


def _sequences(attrs: Attrs, lengths: tuple[int, ...], counts: tuple[int, ...]) -> Callable[[], list[list[int]]]:
    """A function that draws the sequences of rows and columns: the same ones in all runs of a deterministic op."""
    make = _pseudo_random_sizes if attrs["pseudo_random"] else _random_sizes
    seeds = attrs["seed"], attrs["seed2"]
    if not any(seeds):
        seeds = secrets.randbits(64), secrets.randbits(64)

    def draw() -> list[list[int]]:
        key, key2 = seeds if attrs["deterministic"] else (secrets.randbits(64), secrets.randbits(64))
        sequences, counter = [], (key2 & MASK64) << 64
        for length, count in zip(lengths, counts, strict=True):
            sizes, drawn = make(length, count, words(key & MASK64, counter))
            counter += -(-drawn // WORDS_OF_BLOCK)  # also where all regions have one size, as in TensorFlow
            sequences.append(list(accumulate(sizes, initial=0)))
        return sequences

    return draw


def _pseudo_random_sizes(length: int, count: int, numbers: Iterator[int]) -> tuple[list[int], int]:
    """Regions that begin at multiples of the ratio, from a random offset on, rounded up; and the number of words that
    they take."""
    ratio, shorter = length / count, length // count
    high, low = islice(numbers, 2)
    fraction = np.uint64(((high << 32 | low) & MANTISSA) | 1023 << 52).view(np.float64) - 1
    largest = min((shorter + 2) / ratio - 1, (length + 1 - shorter) / ratio - (count - 1))
    offset = float(fraction) * largest
    starts = [1, *(ceil(ratio * (i + offset)) for i in range(1, count)), length + 1]
    return [end - start for start, end in pairwise(starts)], 2


def _random_sizes(length: int, count: int, numbers: Iterator[int]) -> tuple[list[int], int]:
    """Regions of two sizes, shuffled; and the number of words that they take."""
    shorter, longer_regions = divmod(length, count)
    sizes = [shorter + (i < longer_regions) for i in range(count)]
    for i in range(count - 1):
        other = i + below(count - i, numbers, 32)
        sizes[i], sizes[other] = sizes[other], sizes[i]
    return sizes, count


def _regions(sequence: Array, count: int, length: int, overlaps: bool) -> list[tuple[int, int]]:
    """Start and end of each of `count` regions, cut at `length`. A region that ends before its start is empty. A longer
    sequence has elements without a use. Raises InvalidArgument for negative elements."""
    starts = sequence.tolist()
    if min(starts) < 0:
        raise errors.InvalidArgument(f"a pooling sequence must have no negative elements, got {starts}")
    return [(start, max(start, min(end + overlaps, length))) for start, end in pairwise(starts[: count + 1])]


def _cells(b: Bind, gradient: Array, rows: Array, columns: Array) -> Iterator[tuple[Any, Any]]:
    """For each region: the index of its output, and that of its elements."""
    axes = zip((rows, columns), gradient.shape[1:3], b.outputs[0].dims[1:3], strict=True)
    row_regions, column_regions = (_regions(*axis, b.attrs["overlapping"]) for axis in axes)
    for i, (top, bottom) in enumerate(row_regions):
        for j, (left, right) in enumerate(column_regions):
            yield (slice(None), i, j), (slice(None), slice(top, bottom), slice(left, right))


def max_pool_gradient(b: Bind) -> Run:
    """The first largest element of a region gets its gradient."""

    def run(x: Array, y: Array, grad: Array, rows: Array, columns: Array, out: Array) -> None:
        out.fill(0)
        for cell, elements in _cells(b, grad, rows, columns):
            region, target = x[elements], out[elements]
            batch, height, width, channels = region.shape
            if not height * width:
                raise errors.InvalidArgument(f"the region of output {cell[1:]} has no elements")
            flat = region.reshape(batch, height * width, channels)
            winner = flat.argmax(1)[:, None]
            if (np.take_along_axis(flat, winner, 1)[:, 0] != y[cell]).any():
                raise errors.InvalidArgument("orig_output is not the largest element of each region")
            row, column = np.divmod(winner[:, 0], width)
            target[np.arange(batch)[:, None], row, column, np.arange(channels)] += grad[cell]

    return run


def avg_pool_gradient(b: Bind) -> Run:
    def run(_: Array, grad: Array, rows: Array, columns: Array, out: Array) -> None:
        wide = np.zeros(out.shape, np.float64)
        for cell, elements in _cells(b, grad, rows, columns):
            target = wide[elements]
            if target.size:
                target += (grad[cell].astype(np.float64) / (target.shape[1] * target.shape[2]))[:, None, None]
        np.copyto(out, wide, casting="unsafe")

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "FractionalAvgPool": pool(is_average=True), "FractionalMaxPool": pool(is_average=False),
        "FractionalAvgPoolGrad": avg_pool_gradient, "FractionalMaxPoolGrad": max_pool_gradient,
    }.items():
        kernels.kernel(op, dtypes={"T": TYPES})(bind)
