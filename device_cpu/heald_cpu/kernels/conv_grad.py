"""Gradients of convolutions. Graphs also use the input's gradient as a transposed convolution.

For the input: one matrix product computes the addends of each output element to its window's elements. One addition per
tap of the window (col2im) adds them to the input's gradient. For the filter: windows side by side (im2col), transposed
and multiplied by the gradient, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod
from typing import Any

import numpy as np
from heald.api import Attachable, Bind, Kernels, errors

from ..element_types import FLOATS
from .conv import IM2COL_BYTES, Call, Sliding, depthwise_sliding, grouped_windows, known_weights, sliding
from .staging import Scratched, compute_dtype, with_channels_last

Products = Callable[[Any, Any, Any], object]  # of gradient and filter; fills in the addends of each output's window
Weights = Callable[[Any], Any]


def input_gradient(b: Bind) -> Attachable:
    shape, kernel = b.outputs[0].dims, b.inputs[1].meta.dims
    slide, dtype = sliding(b, shape, kernel), compute_dtype(b)
    depth, filters = kernel[-2:]
    groups = slide.shape[-1] // max(1, depth)
    group_taps = prod(slide.taps) * depth

    def lay_out(w: Any) -> Any:
        grouped = w.reshape(group_taps, groups, filters // groups).transpose(1, 2, 0)
        return np.ascontiguousarray(grouped, dtype)

    def products(gradient: Any, weights: Any, columns: Any) -> None:
        rows = gradient.reshape(-1, groups, filters // groups).swapaxes(0, 1)
        np.matmul(rows, weights, out=columns.reshape(groups, -1, group_taps))

    weights_shape = groups, filters // max(1, groups), group_taps
    weights, reads = known_weights(b, "cpu/conv_input_gradient", weights_shape, lay_out)
    return _input_gradient(b, slide, groups, weights, products, reads)


def _undilated(b: Bind, shape: tuple[int, ...], kernel: tuple[int, ...]) -> Sliding:
    """The geometry of a depthwise filter with adjacent taps. Raises Unimplemented for dilations, which TensorFlow's CPU
    kernels of the gradients ignore."""
    slide = depthwise_sliding(b, shape, kernel)
    if slide.dilations != (1, 1):
        raise errors.Unimplemented(f"gradients of depthwise convolution with dilations {slide.dilations} are not "
                                   "implemented")
    return slide


def depthwise_input_gradient(b: Bind) -> Attachable:
    slide, dtype = _undilated(b, b.outputs[0].dims, b.inputs[1].meta.dims), compute_dtype(b)
    depth, multiplier = b.inputs[1].meta.dims[2:]
    weights, reads = known_weights(
        b, "cpu/depthwise_input_gradient", b.inputs[1].meta.dims, lambda w: w.astype(dtype, copy=False))

    def products(gradient: Any, weights: Any, columns: Any) -> None:
        lanes = gradient.reshape(*gradient.shape[:-1], depth, multiplier)
        np.einsum("nhwcm,ijcm->nhwijc", lanes, weights, out=columns[0])

    return _input_gradient(b, slide, 1, weights, products, reads)


def _input_gradient(
    b: Bind, slide: Sliding, groups: int, weights: Weights, products: Products, reads: Collection[int]
) -> Attachable:
    if b.outputs[0].size == 0 or b.inputs[2].size == 0:
        return Scratched(lambda _, outs: lambda: outs[0].fill(0))
    inner = Scratched(lambda ins, outs: _col2im(slide, groups, weights, products, *ins, *outs), reads=reads)
    return with_channels_last(b, inner, (2,))


def _col2im(
    slide: Sliding, groups: int, weights: Weights, products: Products, _: Any, w: Any, gradient: Any, out: Any
) -> Call:
    is_padded = any(map(any, slide.pads))
    total = np.empty(slide.padded_shape, out.dtype) if is_padded else out
    channels = total.reshape(*total.shape[:-1], groups, -1)
    row_bytes = prod(slide.sizes[1:]) * prod(slide.taps) * out.shape[-1] * out.itemsize
    blocks = list(slide.blocks(row_bytes, IM2COL_BYTES))
    lengths = (groups, *gradient[blocks[0]].shape[:-1], *slide.taps, channels.shape[-1])
    buffer = np.empty(prod(lengths), out.dtype)
    steps = []
    for n, r in blocks:
        source = gradient[n, r]
        shape = (groups, *source.shape[:-1], *lengths[-len(slide.taps) - 1 :])
        columns = buffer[: prod(shape)].reshape(shape)
        by_tap = np.moveaxis(columns, 0, -2)
        taps = [(channels[(n, *slide.under(tap, r))], by_tap[(..., *tap, slice(None), slice(None))])
                for tap in np.ndindex(*slide.taps)]
        steps.append((source, columns, taps))

    def run() -> None:
        kernel = weights(w)
        total.fill(0)
        for source, columns, taps in steps:
            products(source, kernel, columns)
            for target, addend in taps:
                np.add(target, addend, out=target)
        if is_padded:
            np.copyto(out, total[slide.inner])

    return run


def filter_gradient(b: Bind) -> Attachable:
    slide = sliding(b, b.inputs[0].meta.dims, b.outputs[0].dims)
    depth, filters = b.outputs[0].dims[-2:]
    groups = slide.shape[-1] // depth
    group_taps = prod(slide.taps) * depth

    def attach(x: Any, _: Any, gradient: Any, out: Any) -> Call:
        padded, fill = slide.padded(x)
        windows = grouped_windows(slide, groups, padded)
        row_bytes = prod(slide.sizes[1:]) * groups * group_taps * x.itemsize
        blocks = [(windows[:, n, r], gradient[n, r]) for n, r in slide.blocks(row_bytes, IM2COL_BYTES)]
        total = out.reshape(group_taps, groups, filters // groups).swapaxes(0, 1)

        def run() -> None:
            fill()
            total.fill(0)
            for source, part in blocks:
                columns = source.reshape(groups, -1, group_taps).swapaxes(1, 2)
                np.add(total, np.matmul(columns, part.reshape(-1, groups, filters // groups).swapaxes(0, 1)), out=total)

        return run

    return _filter_gradient(b, attach)


def depthwise_filter_gradient(b: Bind) -> Attachable:
    slide = _undilated(b, b.inputs[0].meta.dims, b.outputs[0].dims)
    lanes = b.outputs[0].dims[2:]

    def attach(x: Any, _: Any, gradient: Any, out: Any) -> Call:
        padded, fill = slide.padded(x)
        windows, parts = slide.windows(padded), gradient.reshape(*gradient.shape[:-1], *lanes)

        def run() -> None:
            fill()
            np.einsum("nhwijc,nhwcm->ijcm", windows, parts, out=out)

        return run

    return _filter_gradient(b, attach)


def _filter_gradient(b: Bind, attach: Callable[..., Call]) -> Attachable:
    if b.outputs[0].size == 0 or b.inputs[2].size == 0:
        return Scratched(lambda _, outs: lambda: outs[0].fill(0))
    return with_channels_last(b, Scratched(lambda ins, outs: attach(*ins, *outs)), (0, 2), gives_image=False)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Conv2DBackpropInput", dtypes={"T": (*FLOATS, "int32")})(input_gradient)
    kernels.kernel("Conv3DBackpropInputV2", dtypes={"T": FLOATS})(input_gradient)
    kernels.kernel("DepthwiseConv2dNativeBackpropInput", dtypes={"T": FLOATS})(depthwise_input_gradient)
    kernels.kernel("Conv2DBackpropFilter", dtypes={"T": FLOATS})(filter_gradient)
    kernels.kernel("Conv3DBackpropFilterV2", dtypes={"T": FLOATS})(filter_gradient)
    kernels.kernel("DepthwiseConv2dNativeBackpropFilter", dtypes={"T": FLOATS})(depthwise_filter_gradient)
