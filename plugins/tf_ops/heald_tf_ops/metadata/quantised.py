"""Metadata of ops on quantised numbers. A tensor of integers comes with two scalars, its lowest and highest float."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, geometry, info, shape_text

from .array import reshape
from .conv import conv2d
from .joining import concat_by_dim
from .linear import matmul
from .pool import pool
from .resize import resized_dims
from .rules import rule
from .shapes import check_single, dims_of_rank, same_dim

LIMIT = info(dtypes.float32, ())
Results = tuple[ValueInfo, ...]


def _check_limits(*limits: ValueInfo) -> None:
    for limit in limits:
        dims_of_rank(limit, 0, "a limit of a quantised range")


@rule("QuantizeV2")
def quantize(attrs: Attrs, x: ValueInfo, low: ValueInfo, high: ValueInfo) -> Results:
    if attrs["round_mode"] == "HALF_TO_EVEN" and attrs["mode"] != "SCALED":
        raise InvalidArgument(f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is "
                              f"'{attrs['mode']}'")
    limit = _limits_along_axis(attrs, x, low, high)
    return info(attrs["T"], x.shape), limit, limit


@rule("Dequantize")
def dequantize(attrs: Attrs, x: ValueInfo, low: ValueInfo, high: ValueInfo) -> ValueInfo:
    if attrs["dtype"] is dtypes.bfloat16 and attrs["mode"] != "MIN_COMBINED":
        raise InvalidArgument(f"When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{attrs['mode']}'")
    _limits_along_axis(attrs, x, low, high)
    return info(attrs["dtype"], x.shape)


def _limits_along_axis(attrs: Attrs, x: ValueInfo, *limits: ValueInfo) -> ValueInfo:
    """Check the limits: one for all elements, or one for each index along an axis. Return their metadata."""
    axis: int = attrs["axis"]
    if axis < -1:
        raise InvalidArgument(f"axis should be at least -1, got {axis}")
    if axis == -1:
        _check_limits(*limits)
        return LIMIT
    if x.rank is not None and axis >= x.rank:
        raise InvalidArgument(f"Axis must be less than input dimension({x.rank}), got {axis}")
    length = None if x.shape is None else x.shape[axis]
    for limit in limits:
        length = same_dim(length, dims_of_rank(limit, 1, "a limit with an axis")[0], "the limits and the axis")
    return info(dtypes.float32, (length,))


@rule("QuantizedConv2D")
def quantized_conv2d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    if list(attrs["dilations"]) != [1, 1, 1, 1]:
        raise InvalidArgument(f"quantised convolutions have no dilations, given {list(attrs['dilations'])}")
    strides = attrs["strides"]
    if len(strides) == 4 and (strides[1] != strides[2] or (strides[0], strides[3]) != (1, 1)):
        raise InvalidArgument(f"quantised convolutions need equal strides of rows and columns, given {list(strides)}")
    depths = dims_of_rank(x, 4, "input")[3], dims_of_rank(kernel, 4, "filter")[2]
    same_dim(*depths, "the depths of input and filter")
    image = {**attrs, "data_format": "NHWC", "explicit_paddings": ()}
    return info(attrs["out_type"], conv2d(image, x, kernel).shape), LIMIT, LIMIT


@rule("QuantizedMatMul")
def quantized_matmul(attrs: Attrs, a: ValueInfo, b: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    return info(attrs["Toutput"], matmul(attrs, a, b).shape), LIMIT, LIMIT


@rule("QuantizedAvgPool", "QuantizedMaxPool")
def quantized_pool(attrs: Attrs, x: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    return pool({**attrs, "data_format": "NHWC"}, x), LIMIT, LIMIT


@rule("QuantizedRelu", "QuantizedRelu6")
def quantized_relu(attrs: Attrs, x: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    return info(attrs["out_type"], x.shape), LIMIT, LIMIT


@rule("QuantizedBiasAdd")
def quantized_bias_add(attrs: Attrs, x: ValueInfo, bias: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    (length,) = dims_of_rank(bias, 1, "bias")
    if x.shape is None:
        return info(attrs["out_type"], None), LIMIT, LIMIT
    if len(x.shape) < 2:
        raise InvalidArgument(f"Input tensor must be at least 2D: {shape_text(x.shape)}")
    depth = same_dim(x.shape[-1], length, "the last dimension and the elements of bias")
    return info(attrs["out_type"], (*x.shape[:-1], depth)), LIMIT, LIMIT


@rule("QuantizedAdd", "QuantizedMul")
def quantized_binary(attrs: Attrs, x: ValueInfo, y: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    return info(attrs["Toutput"], geometry.broadcast_shapes(x.shape, y.shape)), LIMIT, LIMIT


@rule("QuantizedConcat", values=("concat_dim",))
def quantized_concat(attrs: Attrs, concat_dim: ValueInfo, *values_and_limits: ValueInfo) -> Results:
    _check_limits(*values_and_limits[attrs["N"] :])
    return concat_by_dim(attrs, concat_dim, *values_and_limits[: attrs["N"]]), LIMIT, LIMIT


@rule("QuantizedReshape", values=("shape",))
def quantized_reshape(attrs: Attrs, x: ValueInfo, shape: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    return info(x.dtype, reshape(attrs, x, shape).shape), LIMIT, LIMIT


@rule("Requantize", "QuantizeDownAndShrinkRange")
def requantize(attrs: Attrs, x: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    return info(attrs["out_type"], x.shape), LIMIT, LIMIT


@rule("RequantizationRange")
def requantization_range(_: Attrs, _x: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    return LIMIT, LIMIT


@rule("QuantizedBatchNormWithGlobalNormalization")
def quantized_batch_norm(attrs: Attrs, *inputs: ValueInfo) -> Results:
    dims = dims_of_rank(inputs[0], 4, "input")
    depth = dims[3]
    for vector, name in zip(inputs[3::3], ("mean", "var", "beta", "gamma"), strict=True):
        (length,) = dims_of_rank(vector, 1, name)
        depth = same_dim(depth, length, f"the depth of the input and the length of {name}")
    for i in range(15):
        if i % 3:
            check_single(inputs[i], "a limit of a quantised range", most_rank=1)
    if depth is not None and depth < 2:
        raise InvalidArgument(f"Must have at least two channels, given {depth}")
    return info(attrs["out_type"], (*dims[:3], depth)), LIMIT, LIMIT


@rule("QuantizedInstanceNorm")
def quantized_instance_norm(attrs: Attrs, x: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    dims = dims_of_rank(x, 4, "x")
    if attrs["output_range_given"] and not attrs["given_y_min"] < attrs["given_y_max"]:
        raise InvalidArgument(f"given_y_min must be less than given_y_max : {attrs['given_y_min']} >= "
                              f"{attrs['given_y_max']}")
    return info(x.dtype, dims if x.shape is not None else None), LIMIT, LIMIT


@rule("QuantizedResizeBilinear", values=("size",))
def quantized_resize_bilinear(attrs: Attrs, images: ValueInfo, size: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits(*limits)
    return info(images.dtype, resized_dims({**attrs, "half_pixel_centers": False}, images, size)), LIMIT, LIMIT


@rule("RequantizationRangePerChannel")
def requantization_range_per_channel(_: Attrs, x: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits_of_channels(x, *limits)
    return LIMIT, LIMIT


@rule("RequantizePerChannel")
def requantize_per_channel(attrs: Attrs, x: ValueInfo, *limits: ValueInfo) -> Results:
    _check_limits_of_channels(x, *limits[:2])
    for limit in limits[2:]:
        check_single(limit, "a requested limit", most_rank=1)
    return info(attrs["out_type"], x.shape), LIMIT, LIMIT


def _check_limits_of_channels(x: ValueInfo, *limits: ValueInfo) -> None:
    depth = dims_of_rank(x, 4, "input")[3]
    for limit in limits:
        (length,) = dims_of_rank(limit, 1, "the limits of channels")
        depth = same_dim(depth, length, "the channels and their limits")
