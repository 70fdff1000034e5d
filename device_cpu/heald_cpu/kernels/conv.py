"""Convolution kernels: im2col and one matrix product, or shifted products summed up for depthwise filters.

Measured on layers of ResNet50, MobileNetV2 and InceptionV3 (float32, 2 threads): im2col in blocks of 2 MiB is within
10 % of the bare matrix product on all but the first layers. Blocks of 256 KiB take up to five times as long where few
rows fit. k * k summed products of shifted views take 1.1 to 1.4 times as long (3x3 on 56x56x64: 1.64 ms to 1.52, on
7x7x512: 2.31 to 1.72); one product per filter row is within 5 % on most. A 1x1 filter needs im2col only when strided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Attachable, Bind, Kernels, TensorMetadata, dtypes, errors, geometry

from ..element_types import FLOATS
from .staging import FINGERPRINT, Scratched, channels_last, compute_dtype, nothing, with_channels_last
from .strided_view import strided_view

IM2COL_BYTES = 2 << 20
DEPTHWISE_BYTES = 1 << 18  # two such blocks stay in the second-level cache between the products of the taps
Call = Callable[[], None]


class Sliding(NamedTuple):
    """The geometry, fixed at bind, of a window that slides over the spatial dimensions of a channels-last input."""

    shape: tuple[int, ...]  # of the input, batch and channels included
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    sizes: tuple[int, ...]  # of the output
    pads: tuple[tuple[int, int], ...]

    @property
    def padded_shape(self) -> tuple[int, ...]:
        spatial = (before + n + after for (before, after), n in zip(self.pads, self.shape[1:-1], strict=True))
        return (self.shape[0], *spatial, self.shape[-1])

    @property
    def inner(self) -> tuple[slice, ...]:
        """The index of the input within a padded tensor of shape `padded_shape`."""
        return (slice(None), *(slice(before, before + n) for (before, _), n in
                               zip(self.pads, self.shape[1:-1], strict=True)))

    def padded(self, x: Any, repeat: int = 1) -> tuple[Any, Call]:
        """A buffer with zeros around `x`, each channel `repeat` times, and the call that fills it. Without padding and
        repetition, `x` itself."""
        if repeat == 1 and not any(map(any, self.pads)):
            return x, nothing
        shape = self.padded_shape
        buffer = np.zeros((*shape, repeat), x.dtype)
        inner = buffer[self.inner]
        return buffer.reshape(*shape[:-1], shape[-1] * repeat), lambda: np.copyto(inner, x[..., None])

    def windows(self, padded: Any) -> Any:
        """A view of every window: image, places (row, column), taps (row, column), channel. A dimension of one place
        or tap has stride 0: the graph may give any number there, also one beyond an address."""
        n, *spatial, c = padded.strides
        counts = (*self.sizes, *self.taps)
        factors = (*self.strides, *self.dilations)
        steps = [width * factor if count > 1 else 0
                 for width, factor, count in zip((*spatial, *spatial), factors, counts, strict=True)]
        return strided_view(padded, (self.shape[0], *counts, padded.shape[-1]), (n, *steps, c))

    def under(self, tap: Sequence[int], rows: slice) -> tuple[slice, ...]:
        """Slices of the padded input's spatial dimensions: the elements under this tap of the window for output
        `rows`."""
        places = [(rows.start, rows.stop), *((0, size) for size in self.sizes[1:])]
        return tuple(
            slice(first * step + t * gap, (last - 1) * step + t * gap + 1, step)
            for t, (first, last), step, gap in zip(tap, places, self.strides, self.dilations, strict=True)
        )

    def blocks(self, row_bytes: int, limit: int) -> Iterator[tuple[slice, slice]]:
        """Images and output rows that together keep to `limit` bytes, if one row does."""
        images, rows = self.shape[0], self.sizes[0]
        together = max(1, limit // max(1, row_bytes * rows))
        step = rows if together > 1 else max(1, limit // max(1, row_bytes))
        for first in range(0, images, together):
            for row in range(0, rows, step):
                yield slice(first, min(first + together, images)), slice(row, min(row + step, rows))


def sliding(b: Bind, shape: tuple[int, ...], kernel: tuple[int, ...]) -> Sliding:
    """The `Sliding` of a filter of shape `kernel` over an input of `shape`, with this node's attributes. Raises
    ResourceExhausted if there is no memory for the padded input."""
    order = channels_last(b)
    strides, dilations = steps_of(b)
    lengths, taps = tuple(shape[axis] for axis in order), kernel[: len(order) - 2]
    places = geometry.spatial_windows(b.attrs, lengths[1:-1], taps)
    slide = Sliding(
        lengths, taps, tuple(strides[1:-1]), tuple(dilations[1:-1]), tuple(p.size or 0 for p in places),
        tuple((p.before, p.after) for p in places),
    )
    b.ask(prod(slide.padded_shape) * compute_dtype(b).itemsize, "the padded images")
    return slide


def steps_of(b: Bind) -> tuple[list[int], list[int]]:
    """Strides and dilations with channels last. Raises Unimplemented for steps over images or channels."""
    strides, dilations = ([b.attrs[name][axis] for axis in channels_last(b)] for name in ("strides", "dilations"))
    for name, steps in (("strides", strides), ("dilations", dilations)):
        if steps[0] != 1 or steps[-1] != 1:
            raise errors.Unimplemented(f"{name} in the batch and depth dimensions are not implemented: {steps}")
    return strides, dilations


def known_weights(
    b: Bind, key: str, shape: tuple[int, ...], make: Callable[[Any], Any]
) -> tuple[Callable[[Any], Any], Collection[int]]:
    """The filter as `make` lays it out in this shape and `compute_dtype`: a constant filter once, others with every
    call. Returns it with the inputs that calls read."""
    if not b.inputs[1].is_known:
        return make, range(len(b.inputs))
    meta = TensorMetadata(dtypes.of_numpy(compute_dtype(b)), shape)
    weights = b.prepared(f"{key} {shape}", lambda: make(b.inputs[1].value), fingerprint=FINGERPRINT, meta=meta)
    return lambda _: weights, [i for i in range(len(b.inputs)) if i != 1]


def convolution(b: Bind) -> Any:
    steps_of(b)  # also for results without elements, as TensorFlow
    return nothing if b.outputs[0].size == 0 else with_channels_last(b, bind_convolution(b))


def bind_convolution(b: Bind) -> Attachable:
    """The convolution of images with channels last, in `compute_dtype`."""
    slide, dtype = sliding(b, b.inputs[0].meta.dims, b.inputs[1].meta.dims), compute_dtype(b)
    depth, filters = b.inputs[1].meta.dims[-2:]
    groups = slide.shape[-1] // depth
    columns = prod(slide.taps) * depth

    def lay_out(w: Any) -> Any:
        grouped = w.reshape(columns, groups, filters // groups).transpose(1, 0, 2)
        return np.ascontiguousarray(grouped, dtype)

    weights, reads = known_weights(b, "cpu/conv", (groups, columns, filters // max(1, groups)), lay_out)
    if {*slide.taps, *slide.strides, groups} == {1} and not any(map(any, slide.pads)):
        return Scratched(lambda ins, outs: _pointwise(weights, *ins[:2], *outs), reads=reads)
    return Scratched(lambda ins, outs: _im2col(slide, groups, weights, *ins[:2], *outs), reads=reads)


def _pointwise(weights: Callable[[Any], Any], x: Any, w: Any, out: Any) -> Call:
    rows, products = x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1])
    return lambda: np.matmul(rows, weights(w)[0], out=products)


def _im2col(slide: Sliding, groups: int, weights: Callable[[Any], Any], x: Any, w: Any, out: Any) -> Call:
    """Blocks of windows copied side by side, then multiplied, group by group, straight into the output."""
    padded, fill = slide.padded(x)
    group_taps = prod(slide.taps) * slide.shape[-1] // groups
    windows = grouped_windows(slide, groups, padded)
    row_bytes = prod(slide.sizes[1:]) * groups * group_taps * x.itemsize
    blocks = [(windows[:, n, r], out[n, r]) for n, r in slide.blocks(row_bytes, IM2COL_BYTES)]
    buffer = np.empty(max(source.size for source, _ in blocks), x.dtype)
    steps = []
    for source, target in blocks:
        columns = buffer[: source.size].reshape(source.shape)
        products = target.reshape(-1, groups, target.shape[-1] // groups).swapaxes(0, 1)
        steps.append((columns, source, columns.reshape(groups, -1, group_taps), products))

    def run() -> None:
        fill()
        kernel = weights(w)
        for columns, source, matrix, products in steps:
            columns[...] = source
            np.matmul(matrix, kernel, out=products)

    return run


def grouped_windows(slide: Sliding, groups: int, padded: Any) -> Any:
    """`Sliding.windows` with the groups of channels first."""
    windows = slide.windows(padded)
    return np.moveaxis(windows.reshape(*windows.shape[:-1], groups, -1), -2, 0)


def depthwise_sliding(b: Bind, shape: tuple[int, ...], kernel: tuple[int, ...]) -> Sliding:
    batch, *spatial, channels = (b.attrs["strides"][axis] for axis in channels_last(b))
    if spatial[0] != spatial[1] or (batch, channels) != (1, 1):
        raise errors.InvalidArgument("depthwise convolution needs equal strides for rows and columns, and none in the "
                                     f"batch and depth dimensions, given {list(b.attrs['strides'])}")
    return sliding(b, shape, kernel)


def depthwise_conv2d(b: Bind) -> Any:
    convolution = bind_depthwise_convolution(b)
    return nothing if b.outputs[0].size == 0 else with_channels_last(b, convolution)


def bind_depthwise_convolution(b: Bind) -> Attachable:
    """As `bind_convolution`, but each channel has filters of its own."""
    slide, dtype = depthwise_sliding(b, b.inputs[0].meta.dims, b.inputs[1].meta.dims), compute_dtype(b)
    if 0 in slide.taps:
        return Scratched(lambda _, outs: partial(outs[0].fill, 0))
    channels, multiplier = b.inputs[1].meta.dims[2:]
    lanes = channels * multiplier

    def lay_out(w: Any) -> Any:
        kernel = np.ascontiguousarray(w, dtype).reshape(*slide.taps, lanes)
        return np.tile(kernel, repeats)

    repeats = slide.sizes[1] if slide.strides[1] == 1 else 1
    weights, reads = known_weights(b, "cpu/depthwise", (*slide.taps, lanes * repeats), lay_out)
    attach = _shifted_rows if slide.strides[1] == 1 else _window_sums
    return Scratched(lambda ins, outs: attach(slide, multiplier, weights, *ins[:2], *outs), reads=reads)


def _shifted_rows(slide: Sliding, multiplier: int, weights: Callable[[Any], Any], x: Any, w: Any, out: Any) -> Call:
    """Per tap, whole rows times the filter repeated along the row: 0.6 ms for 112x112x32, 1.5 without repeating."""
    padded, fill = slide.padded(x, multiplier)
    rows = padded.reshape(*padded.shape[:2], -1)
    target = out.reshape(*out.shape[:2], -1)
    width, step, (down, right) = target.shape[2], slide.strides[0], slide.dilations
    beside = right * out.shape[3]
    row_bytes = width * x.itemsize
    blocks = list(slide.blocks(row_bytes, DEPTHWISE_BYTES))
    scratch = np.empty(max(target[block].size for block in blocks), x.dtype)
    steps = []
    for n, r in blocks:
        total = target[n, r]
        products = scratch[: total.size].reshape(total.shape)
        views = [(i, j, rows[n, r.start * step + i * down : (r.stop - 1) * step + i * down + 1 : step,
                             j * beside : j * beside + width])
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


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Conv2D")(convolution)
    kernels.kernel("Conv3D", dtypes={"T": FLOATS})(convolution)
    kernels.kernel("DepthwiseConv2dNative")(depthwise_conv2d)
