"""Convolutions of images and volumes with channels last. Binding packs the filters in the library's layout."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial

from heald.api import Bind, FusedOp, Kernels, errors, geometry

from ..attributes import Eltwise, number
from ..epilogue import Epilogue
from ..library import library
from ..memory import FLOAT, dense, row_major_strides
from ..primitives import INFERENCE, NativeKernel
from ..products import Weights, product
from ..single_thread import is_small
from .binding import Head, check_elements, without_epilogue

DIRECT, TRANSPOSED = number("dnnl_convolution_direct"), number("dnnl_deconvolution_direct")
LEAST_CHANNELS = 48


def conv(b: Bind, node: FusedOp, after: Epilogue, *, winograd: bool = False) -> NativeKernel:
    """Bind a convolution. Filters are HWIO, or DHWIO for volumes. The images may have several groups of the filters'
    channels."""
    images, (*taps, depth, filters) = (b.inputs[a].meta.dims for a in node.args)
    groups = images[-1] // max(depth, 1)
    *steps, inward, _ = row_major_strides((*taps, depth, filters))
    dims, strides = [filters, depth, *taps], [1, inward, *steps]
    if groups > 1:
        dims, strides = [groups, filters // groups, *dims[1:]], [filters // groups, *strides]
    weights = Weights(dims, strides, (filters,), (filters,), 0b11 if groups > 1 else 1)
    return _convolution(b, node, after, weights, winograd=winograd)


def depthwise_conv2d(b: Bind, node: FusedOp, after: Epilogue) -> NativeKernel:
    """Bind a depthwise convolution. Filters are HWCM: each channel has M filters of its own."""
    if node.attrs["strides"][1] != node.attrs["strides"][2]:
        raise errors.Unimplemented("TensorFlow's kernel takes equal strides")
    height, width, channels, multiplier = shape = b.inputs[node.args[1]].meta.dims
    down, right, across, _ = row_major_strides(shape)
    dims, strides = (channels, multiplier, 1, height, width), (across, 1, 1, down, right)
    return _convolution(b, node, after, Weights(dims, strides, (channels, multiplier), (channels * multiplier,), 0b11))


def _convolution(
    b: Bind, node: FusedOp, after: Epilogue, weights: Weights, *, winograd: bool = False
) -> NativeKernel:
    attrs, (images, filters) = node.attrs, (b.inputs[a].meta for a in node.args)
    _check(b, node, node.args[1], images.dims, filters.dims)
    places = geometry.spatial_windows(attrs, images.dims[1:-1], filters.dims[:-2])
    if winograd and _is_of_neighbours(b, node, after) and not is_small(b, b.fused or [node]):
        from .. import winograd_tiling  # imported late, for many programs need neither module
        from .winograd import bind_in_tiles

        size = winograd_tiling.fastest(images.dims, filters.dims[:-2], node.outputs[0].dims, places)
        if size is not None:
            with suppress(errors.Unimplemented):  # some CPUs lack a primitive of a stage
                return bind_in_tiles(b, node, after, size)
    source, result = dense(images.dims, images.dtype), dense(node.outputs[0].dims, b.outputs[0].dtype)
    create = library().c.dnnl_convolution_forward_primitive_desc_create
    return product(b, node, after, weights, source, result, create, lambda weights, bias, attributes: (
        INFERENCE, DIRECT, source.descriptor, weights, bias, result.descriptor, list(attrs["strides"][1:-1]),
        [d - 1 for d in attrs["dilations"][1:-1]], [p.before for p in places], [p.after for p in places], attributes))


def _is_of_neighbours(b: Bind, node: FusedOp, after: Epilogue) -> bool:
    """True for a float32 convolution of adjacent pixels, with enough channels for fast products of matrices, and with
    an epilogue of functions of one operand."""
    images, filters = (b.inputs[a].meta for a in node.args)
    steps = {*node.attrs["strides"], *node.attrs["dilations"]}
    return (filters.dims[:2] != (1, 1) and steps == {1} and filters.dims[2] == images.dims[-1]
            and min(filters.dims[2:]) >= LEAST_CHANNELS and images.dtype is b.outputs[0].dtype is FLOAT
            and all(isinstance(step, Eltwise) for step in after.steps))


def conv_input_gradient(b: Bind, node: FusedOp, after: Epilogue) -> NativeKernel:
    """Bind a transposed convolution. Filters are HWIO, or DHWIO for volumes; their I are the result's channels."""
    _, at_filters, at_images = node.args
    attrs, images, (*taps, depth, channels) = node.attrs, b.inputs[at_images].meta, b.inputs[at_filters].meta.dims
    shape = node.outputs[0].dims
    _check(b, node, at_filters, images.dims, shape, taps)
    if shape[-1] != depth:
        raise errors.Unimplemented("groups of channels")
    *steps, outward, _ = row_major_strides((*taps, depth, channels))
    weights = Weights([depth, channels, *taps], [outward, 1, *steps], (depth, 1), (depth,), 1)
    strides, dilations = attrs["strides"][1:-1], attrs["dilations"][1:-1]
    before = [window.before for window in geometry.spatial_windows(attrs, shape[1:-1], taps)]
    reached = [(n - 1) * stride + (k - 1) * dilation + 1
               for n, stride, k, dilation in zip(images.dims[1:-1], strides, taps, dilations, strict=True)]
    behind = [total - first - n for total, first, n in zip(reached, before, shape[1:-1], strict=True)]
    source, result = dense(images.dims, images.dtype), dense(shape, b.outputs[0].dtype)
    create = library().c.dnnl_deconvolution_forward_primitive_desc_create
    turned = node._replace(args=(at_images, at_filters))
    return product(b, turned, after, weights, source, result, create, lambda weights, bias, attributes: (
        INFERENCE, TRANSPOSED, source.descriptor, weights, bias, result.descriptor, list(strides),
        [d - 1 for d in dilations], before, behind, attributes))


def _check(b: Bind, node: FusedOp, filters: int, *shapes: Sequence[int]) -> None:
    """Raise Unimplemented for attributes, filters and shapes that no convolution of this module takes."""
    attrs = node.attrs
    if attrs["data_format"] not in ("NHWC", "NDHWC"):
        raise errors.Unimplemented("images with their channels first")
    if {attrs[name][i] for name in ("strides", "dilations") for i in (0, -1)} != {1}:
        raise errors.Unimplemented("strides or dilations of batch or depth")
    if not b.inputs[filters].is_known:
        raise errors.Unimplemented("filters that are not known before the run")
    check_elements(*shapes, node.outputs[0].dims)


CONVOLUTIONS: Mapping[str, Head] = {
    "Conv2D": conv, "Conv2DBackpropInput": conv_input_gradient, "Conv3D": conv,
    "Conv3DBackpropInputV2": conv_input_gradient, "DepthwiseConv2dNative": depthwise_conv2d,
}


def heads(winograd: bool) -> Mapping[str, Head]:
    """The bind functions of the convolutions by op. `winograd`: see plugin.Config."""
    return {**CONVOLUTIONS, "Conv2D": partial(conv, winograd=winograd)}


def register_kernels(kernels: Kernels, types: Collection[str], winograd: bool) -> None:
    for op, head in heads(winograd).items():
        kernels.kernel(op, dtypes={"T": types})(without_epilogue(head))
