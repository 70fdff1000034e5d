"""Convolutions of images with channels last. Filters are laid anew when they are bound, as the library wants them."""

from __future__ import annotations

from collections.abc import Collection

from weft.api import Attachable, Bind, FusedOp, Kernels, errors, geometry

from ..attributes import number
from ..epilogue import Epilogue
from ..library import library
from ..memory import dense, rows
from ..products import Weights, product
from .binding import FLOAT, alone, has_elements

INFERENCE, DIRECT = number("dnnl_forward_inference"), number("dnnl_convolution_direct")


def conv2d(b: Bind, node: FusedOp, after: Epilogue) -> Attachable:
    """Filter HWIO; the images' channels may be several groups of the filter's."""
    images, (height, width, depth, filters) = (b.inputs[a].meta.dims for a in node.args)
    groups = images[3] // max(depth, 1)
    down, right, inward, _ = rows((height, width, depth, filters))
    dims, strides = [filters, depth, height, width], [1, inward, down, right]
    if groups > 1:
        dims, strides = [groups, filters // groups, *dims[1:]], [filters // groups, *strides]
    return _convolution(b, node, after, Weights(dims, strides, (filters,), (filters,), 0b11 if groups > 1 else 1))


def depthwise_conv2d(b: Bind, node: FusedOp, after: Epilogue) -> Attachable:
    """Filter HWCM: each channel has M filters of its own."""
    if node.attrs["strides"][1] != node.attrs["strides"][2] or max(node.attrs["dilations"]) > 1:
        raise errors.Unimplemented("TensorFlow's kernel takes no dilations, and equal strides")
    height, width, channels, multiplier = shape = b.inputs[node.args[1]].meta.dims
    down, right, across, _ = rows(shape)
    dims, strides = (channels, multiplier, 1, height, width), (across, 1, 1, down, right)
    return _convolution(b, node, after, Weights(dims, strides, (channels, multiplier), (channels * multiplier,), 0b11))


def _convolution(b: Bind, node: FusedOp, after: Epilogue, weights: Weights) -> Attachable:
    attrs, (images, filters) = node.attrs, (b.inputs[a] for a in node.args)
    if attrs["data_format"] != "NHWC":
        raise errors.Unimplemented("images with their channels first")
    if {attrs[name][i] for name in ("strides", "dilations") for i in (0, 3)} != {1}:
        raise errors.Unimplemented("strides or dilations of batch or depth")
    if not filters.is_known:
        raise errors.Unimplemented("filters that are not known before the run")
    has_elements(images.meta.dims, filters.meta.dims, node.outputs[0].dims)
    places = geometry.spatial_windows(attrs, images.meta.dims[1:3], filters.meta.dims[:2])
    source, result = dense(images.meta.dims, images.meta.dtype), dense(node.outputs[0].dims, b.outputs[0].dtype)
    create = library().c.dnnl_convolution_forward_primitive_desc_create
    return product(b, node, after, weights, source, result, create, lambda weights, bias, attributes: (
        INFERENCE, DIRECT, source.descriptor, weights, bias, result.descriptor, list(attrs["strides"][1:3]),
        [d - 1 for d in attrs["dilations"][1:3]], [p.before for p in places], [p.after for p in places], attributes))


def register(kernels: Kernels, types: Collection[str] = FLOAT) -> None:
    kernels.kernel("Conv2D", dtypes={"T": types})(alone(conv2d))
    kernels.kernel("DepthwiseConv2dNative", dtypes={"T": types})(alone(depthwise_conv2d))
