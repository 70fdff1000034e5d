"""Convolution kernels: im2col and one matrix product, or shifted products summed up for depthwise filters.

Measured on layers of ResNet50, MobileNetV2 and InceptionV3 (float32, 2 threads): im2col in blocks of 2 MiB is within
10 % of the bare matrix product on all but the first layers. Blocks of 256 KiB take up to five times as long where few
rows fit. k * k summed products of shifted views take 1.1 to 1.4 times as long (3x3 on 56x56x64: 1.64 ms to 1.52, on
7x7x512: 2.31 to 1.72); one product per filter row is within 5 % on most. A 1x1 filter needs im2col only when strided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from weft.api import Bind, Kernels, errors, geometry

from .staging import CHANNELS_LAST, Scratched, compute_dtype, nothing, staged

IM2COL_BYTES = 2 << 20
DEPTHWISE_BYTES = 1 << 18  # two such blocks stay in the second-level cache between the products of the taps
Call = Callable[[], None]


@dataclass(frozen=True)
class Sliding:
    """A 2-D window sliding over an NHWC input: what is fixed at bind."""

    shape: tuple[int, ...]  # of the input, NHWC
    taps: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    sizes: tuple[int, int]  # of the output
    pads: tuple[tuple[int, int], tuple[int, int]]

    def padded(self, x: Any, repeat: int = 1) -> tuple[Any, Call]:
        """A buffer with zeros around `x`, each channel `repeat` times, and the call that fills it; or `x` itself."""
        if repeat == 1 and not any(map(any, self.pads)):
            return x, nothing
        n, h, w, c = self.shape
        (top, bottom), (left, right) = self.pads
        buffer = np.zeros((n, top + h + bottom, left + w + right, c, repeat), x.dtype)
        inner = buffer[:, top : top + h, left : left + w]
        outer = buffer.reshape(*buffer.shape[:3], c * repeat)
        return outer, lambda: np.copyto(inner, x[..., None])

    def windows(self, padded: Any) -> Any:
        """A view of every window: image, row, column, tap row, tap column, channel."""
        n, h, w, c = padded.strides
        (sh, sw), (dh, dw) = self.strides, self.dilations
        shape = (self.shape[0], *self.sizes, *self.taps, padded.shape[3])
        return as_strided(padded, shape, (n, h * sh, w * sw, h * dh, w * dw, c), writeable=False)

    def blocks(self, row_bytes: int, limit: int) -> Iterator[tuple[slice, slice]]:
        """Images and output rows that together keep to `limit` bytes, if one row does."""
        images, rows = self.shape[0], self.sizes[0]
        together = max(1, limit // max(1, row_bytes * rows))
        step = rows if together > 1 else max(1, limit // max(1, row_bytes))
        for first in range(0, images, together):
            for row in range(0, rows, step):
                yield slice(first, min(first + together, images)), slice(row, min(row + step, rows))


def sliding(b: Bind) -> Sliding:
    order = CHANNELS_LAST[b.attrs["data_format"]]
    strides, dilations = ([b.attrs[name][axis] for axis in order] for name in ("strides", "dilations"))
    for name, steps in (("strides", strides), ("dilations", dilations)):
        if steps[0] != 1 or steps[3] != 1:
            raise errors.Unimplemented(f"{name} in the batch and depth dimensions are not implemented: {steps}")
    shape = tuple(b.inputs[0].meta.dims[axis] for axis in order)
    taps = b.inputs[1].meta.dims[:2]
    rows, columns = geometry.spatial_windows(b.attrs, shape[1:3], taps)
    assert rows.size is not None
    assert columns.size is not None
    return Sliding(
        shape, (taps[0], taps[1]), (strides[1], strides[2]), (dilations[1], dilations[2]), (rows.size, columns.size),
        ((rows.before, rows.after), (columns.before, columns.after)),
    )


def _weights(b: Bind, key: str, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The filter as `make` lays it out: once where it is constant, else with every call."""
    value = b.inputs[1].value
    if value is None:
        return make
    made = b.prepared(key, lambda: make(value))
    return lambda _: made


def conv2d(b: Bind) -> Any:
    slide, dtype = sliding(b), compute_dtype(b)
    depth, filters = b.inputs[1].meta.dims[2:]
    groups = slide.shape[3] // depth
    columns = prod(slide.taps) * depth

    def lay_out(w: Any) -> Any:
        grouped = w.reshape(columns, groups, filters // groups).transpose(1, 0, 2)
        return np.ascontiguousarray(grouped, dtype)

    weights = _weights(b, "cpu/conv2d", lay_out)
    if b.outputs[0].size == 0:
        return nothing
    if slide.taps == (1, 1) and slide.strides == (1, 1) and groups == 1 and not any(map(any, slide.pads)):
        return staged(b, Scratched(lambda ins, outs: _pointwise(weights, *ins, *outs)))
    return staged(b, Scratched(lambda ins, outs: _im2col(slide, groups, weights, *ins, *outs)))


def _pointwise(weights: Callable[[Any], Any], x: Any, w: Any, out: Any) -> Call:
    rows, products = x.reshape(-1, x.shape[3]), out.reshape(-1, out.shape[3])
    return lambda: np.matmul(rows, weights(w)[0], out=products)


def _im2col(slide: Sliding, groups: int, weights: Callable[[Any], Any], x: Any, w: Any, out: Any) -> Call:
    """Blocks of windows copied side by side, then multiplied, group by group, straight into the output."""
    padded, fill = slide.padded(x)
    depth = slide.shape[3] // groups
    each = prod(slide.taps) * depth
    windows = slide.windows(padded).reshape(slide.shape[0], *slide.sizes, *slide.taps, groups, depth)
    windows = np.moveaxis(windows, 5, 0)
    row_bytes = slide.sizes[1] * groups * each * x.itemsize
    blocks = [(windows[:, n, r], out[n, r]) for n, r in slide.blocks(row_bytes, IM2COL_BYTES)]
    buffer = np.empty(max(source.size for source, _ in blocks), x.dtype)
    steps = []
    for source, target in blocks:
        columns = buffer[: source.size].reshape(source.shape)
        products = target.reshape(-1, groups, target.shape[-1] // groups).swapaxes(0, 1)
        steps.append((columns, source, columns.reshape(groups, -1, each), products))

    def run() -> None:
        fill()
        kernel = weights(w)
        for columns, source, matrix, products in steps:
            columns[...] = source
            np.matmul(matrix, kernel, out=products)

    return run


def depthwise_conv2d(b: Bind) -> Any:
    slide, dtype = sliding(b), compute_dtype(b)
    if slide.dilations != (1, 1):
        raise errors.Unimplemented(f"depthwise convolution with dilations {slide.dilations} is not implemented")
    if slide.strides[0] != slide.strides[1]:
        raise errors.InvalidArgument(f"depthwise convolution needs equal strides, given {slide.strides}")
    if b.outputs[0].size == 0:
        return nothing
    channels, multiplier = b.inputs[1].meta.dims[2:]
    lanes = channels * multiplier

    def lay_out(w: Any) -> Any:
        kernel = np.ascontiguousarray(w, dtype).reshape(*slide.taps, lanes)
        return np.tile(kernel, slide.sizes[1]) if slide.strides[1] == 1 else kernel

    weights = _weights(b, "cpu/depthwise", lay_out)
    attach = _shifted_rows if slide.strides[1] == 1 else _window_sums
    return staged(b, Scratched(lambda ins, outs: attach(slide, multiplier, weights, *ins, *outs)))


def _shifted_rows(slide: Sliding, multiplier: int, weights: Callable[[Any], Any], x: Any, w: Any, out: Any) -> Call:
    """Per tap, whole rows times the filter repeated along the row: 0.6 ms for 112x112x32, 1.5 without repeating."""
    padded, fill = slide.padded(x, multiplier)
    rows = padded.reshape(*padded.shape[:2], -1)
    target = out.reshape(*out.shape[:2], -1)
    width, lanes, step = target.shape[2], out.shape[3], slide.strides[0]
    row_bytes = width * x.itemsize
    blocks = list(slide.blocks(row_bytes, DEPTHWISE_BYTES))
    scratch = np.empty(max(target[block].size for block in blocks), x.dtype)
    steps = []
    for n, r in blocks:
        total = target[n, r]
        products = scratch[: total.size].reshape(total.shape)
        views = [(i, j, rows[n, r.start * step + i : (r.stop - 1) * step + i + 1 : step, j * lanes : j * lanes + width])
                 for i in range(slide.taps[0]) for j in range(slide.taps[1])]
        steps.append((total, products, views))

    def run() -> None:
        fill()
        kernel = weights(w)
        for total, products, views in steps:
            for i, j, view in views:
                if i == j == 0:
                    np.multiply(view, kernel[0, 0], out=total)
                else:
                    np.multiply(view, kernel[i, j], out=products)
                    np.add(total, products, out=total)

    return run


def _window_sums(slide: Sliding, multiplier: int, weights: Callable[[Any], Any], x: Any, w: Any, out: Any) -> Call:
    """Strided windows do not line up with rows; einsum then beats shifted views (0.26 ms to 0.40 for 56x56x144)."""
    padded, fill = slide.padded(x, multiplier)
    windows = slide.windows(padded)

    def run() -> None:
        fill()
        np.einsum("nhwijc,ijc->nhwc", windows, weights(w), out=out)

    return run


def register(kernels: Kernels) -> None:
    kernels.kernel("Conv2D")(conv2d)
    kernels.kernel("DepthwiseConv2dNative")(depthwise_conv2d)
