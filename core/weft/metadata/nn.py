"""Metadata of convolutions, pooling, bias and batch normalisation."""

from __future__ import annotations

from ..errors import InvalidArgument
from ..geometry import spatial_windows, window
from ..op import Attrs
from ..tensor import ValueInfo, info, shape_text
from .rules import rule
from .shapes import Dims, ranked, same_dim


@rule("Conv2D")
def conv2d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo) -> ValueInfo:
    lengths, taps = ranked(x, 4, "input"), ranked(kernel, 4, "filter")
    if 0 in taps[:3]:
        raise InvalidArgument(f"filter must not have zero elements, given shape {shape_text(taps)}")
    depth, filter_depth, filters = lengths[attrs["data_format"].index("C")], taps[2], taps[3]
    if depth is not None and filter_depth is not None:
        if depth % filter_depth:
            raise InvalidArgument(f"input depth must be evenly divisible by filter depth: {depth} vs {filter_depth}")
        if filters is not None and (depth == 0 or filters % (depth // filter_depth)):
            raise InvalidArgument(f"output depth must be evenly divisible by number of groups: {filters} filters "
                                  f"for {depth // filter_depth} groups")
    return info(x.dtype, _slid(attrs, lengths, taps[:2], filters))


@rule("DepthwiseConv2dNative")
def depthwise_conv2d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo) -> ValueInfo:
    lengths, taps = ranked(x, 4, "input"), ranked(kernel, 4, "filter")
    depth = same_dim(lengths[attrs["data_format"].index("C")], taps[2], "the depths of input and filter")
    multiplier = taps[3]
    filters = None if depth is None or multiplier is None else depth * multiplier
    return info(x.dtype, _slid(attrs, lengths, taps[:2], filters))


@rule("AvgPool", "MaxPool")
def pool(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    lengths, taps = ranked(x, 4, "input"), attrs["ksize"]
    if len(taps) != 4 or min(taps) < 1:
        raise InvalidArgument(f"ksize must be 4 positive numbers, given {list(taps)}")
    h = attrs["data_format"].index("H")
    for pad, taken in zip(attrs.get("explicit_paddings", ())[2 * h : 2 * h + 4], (0, 0, 1, 1), strict=False):
        if pad >= taps[h + taken]:
            raise InvalidArgument(f"padding {pad} needs to be smaller than the window size {taps[h + taken]}")
    shape = _slid(attrs, lengths, taps[h : h + 2], None)
    c = attrs["data_format"].index("C")
    depth = window(lengths[c], taps[c], attrs["strides"][c]).size
    return info(x.dtype, (*shape[:c], depth, *shape[c + 1 :]))


def _slid(attrs: Attrs, lengths: Dims, taps: Dims, depth: int | None) -> Dims:
    """The output's shape: each window's number of places, `depth` channels, the input's batch."""
    h, c = attrs["data_format"].index("H"), attrs["data_format"].index("C")
    shape = list(lengths)
    shape[h : h + 2] = [w.size for w in spatial_windows(attrs, lengths[h : h + 2], taps)]
    shape[c] = depth
    return tuple(shape)


@rule("BiasAdd")
def bias_add(attrs: Attrs, x: ValueInfo, bias: ValueInfo) -> ValueInfo:
    (length,) = ranked(bias, 1, "bias")
    if x.shape is None:
        return info(x.dtype, None)
    if len(x.shape) < 2:
        raise InvalidArgument(f"Input tensor must be at least 2D: {shape_text(x.shape)}")
    return info(x.dtype, _with_channels(x.shape, 1 if attrs["data_format"] == "NCHW" else -1, length, "bias"))


def _with_channels(shape: Dims, axis: int, length: int | None, name: str) -> Dims:
    dims = list(shape)
    dims[axis] = same_dim(dims[axis], length, f"the channels of the input and the elements of {name}")
    return tuple(dims)


@rule("FusedBatchNorm", "FusedBatchNormV2")
def fused_batch_norm(attrs: Attrs, x: ValueInfo, *parameters: ValueInfo) -> tuple[ValueInfo, ...]:
    if x.rank not in (None, 4, 5):
        raise InvalidArgument(f"input must be 4 or 5-dimensional, given {shape_text(x.shape)}")
    axis = 1 if attrs["data_format"][1] == "C" else -1
    channels = None if x.shape is None else x.shape[axis]
    whole_batch = attrs["is_training"] and attrs["exponential_avg_factor"] == 1.0  # mean and variance are not read
    for name, parameter in zip(("scale", "offset", "mean", "variance"), parameters, strict=True):
        (length,) = ranked(parameter, 1, name)
        if name in ("scale", "offset") or not whole_batch:
            channels = same_dim(channels, length, f"the channels of x and the elements of {name}")
    y = info(x.dtype, None if x.shape is None else _with_channels(x.shape, axis, channels, "scale"))
    return (y, *(info(parameters[0].dtype, (channels,)) for _ in range(4)))


@rule("FusedBatchNormV3")
def fused_batch_norm_v3(attrs: Attrs, x: ValueInfo, *parameters: ValueInfo) -> tuple[ValueInfo, ...]:
    """The third reserve space is a scalar here; TensorFlow leaves its shape open."""
    return (*fused_batch_norm(attrs, x, *parameters), info(parameters[0].dtype, ()))
