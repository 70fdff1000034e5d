"""Metadata of convolutions, of their gradients, and of the dilation of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heald.api import Attrs, InvalidArgument, ValueInfo, errors, geometry, info, shape_text

from .rules import rule
from .shapes import Dims, dims_of_rank, lengths_in, same_dim, same_shape

Forward = Callable[[Attrs, ValueInfo, ValueInfo], ValueInfo]
Gradient = Callable[[Attrs, ValueInfo, ValueInfo, ValueInfo], ValueInfo]


def slid(attrs: Attrs, lengths: Dims, taps: Dims, depth: int | None) -> Dims:
    """Return the output's shape: the number of each window's positions, `depth` channels, the input's batch."""
    first = geometry.first_spatial(attrs["data_format"])
    shape = list(lengths)
    windows = geometry.spatial_windows(attrs, lengths[first:][: len(taps)], taps)
    shape[first : first + len(taps)] = [window.size for window in windows]
    shape[channels(attrs)] = depth
    return tuple(shape)


def channels(attrs: Attrs) -> int:
    """Return the axis of the channels."""
    axis: int = attrs["data_format"].index("C")
    return axis


@rule("Conv2D")
def conv2d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo) -> ValueInfo:
    lengths, taps = dims_of_rank(x, 4, "input"), dims_of_rank(kernel, 4, "filter")
    if 0 in taps[:3]:
        raise InvalidArgument(f"filter must not have zero elements, given shape {shape_text(taps)}")
    depth, filter_depth, filters = lengths[channels(attrs)], taps[2], taps[3]
    if depth is not None and filter_depth is not None:
        if depth % filter_depth:
            raise InvalidArgument(f"input depth must be evenly divisible by filter depth: {depth} vs {filter_depth}")
        if filters is not None and (depth == 0 or filters % (depth // filter_depth)):
            raise InvalidArgument(f"output depth must be evenly divisible by number of groups: {filters} filters "
                                  f"for {depth // filter_depth} groups")
    return info(x.dtype, slid(attrs, lengths, taps[:2], filters))


@rule("Conv3D")
def conv3d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo) -> ValueInfo:
    lengths, taps = dims_of_rank(x, 5, "input"), dims_of_rank(kernel, 5, "filter")
    if 0 in taps:
        raise InvalidArgument(f"filter must not have zero elements, given shape {shape_text(taps)}")
    for name in ("strides", "dilations"):
        if len(attrs[name]) == 5 and (attrs[name][0], attrs[name][channels(attrs)]) != (1, 1):
            raise InvalidArgument(f"{name} in the batch and depth dimensions are not supported: {list(attrs[name])}")
    same_dim(lengths[channels(attrs)], taps[3], "the depths of input and filter")
    return info(x.dtype, slid(attrs, lengths, taps[:3], taps[4]))


@rule("DepthwiseConv2dNative")
def depthwise_conv2d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo) -> ValueInfo:
    lengths, taps = dims_of_rank(x, 4, "input"), dims_of_rank(kernel, 4, "filter")
    depth = same_dim(lengths[channels(attrs)], taps[2], "the depths of input and filter")
    multiplier = taps[3]
    filters = None if depth is None or multiplier is None else depth * multiplier
    return info(x.dtype, slid(attrs, lengths, taps[:2], filters))


FUSED_ARGS = {"BiasAdd": 1, "FusedBatchNorm": 4}  # the vectors that the op after the convolution takes
ACTIVATIONS = ("Elu", "LeakyRelu", "Relu", "Relu6", "_FusedHardSwish")


@rule("_FusedConv2D")
def fused_conv2d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo, *args: ValueInfo) -> ValueInfo:
    """Fuses a convolution, bias or batch normalisation, and an optional activation."""
    if attrs["filter_format"] != "HWIO" or attrs["data_format"] == "NCHW_VECT_C":
        raise errors.Unimplemented(f"a fused convolution takes HWIO filters, given {attrs['filter_format']} for "
                                   f"{attrs['data_format']}")
    if len(attrs["TArgs"]) != attrs["num_args"]:
        raise InvalidArgument(f"num_args is {attrs['num_args']}, given {len(attrs['TArgs'])} types of extra arguments")
    return _fused_convolution(attrs, conv2d, x, kernel, args)


@rule("_FusedDepthwiseConv2dNative")
def fused_depthwise_conv2d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo, *args: ValueInfo) -> ValueInfo:
    return _fused_convolution(attrs, depthwise_conv2d, x, kernel, args)


def _fused_convolution(attrs: Attrs, forward: Forward, x: ValueInfo, kernel: ValueInfo,
                       args: Sequence[ValueInfo]) -> ValueInfo:
    fused = [op.decode() if isinstance(op, bytes) else op for op in attrs["fused_ops"]]
    if not fused or fused[0] not in FUSED_ARGS or len(fused) > 2 or not {*fused[1:]} <= {*ACTIVATIONS}:
        raise errors.Unimplemented(f"Fusion is not implemented: [{','.join(fused)}]")
    if attrs["num_args"] != FUSED_ARGS[fused[0]]:
        raise InvalidArgument(f"a convolution fused with {fused[0]} must have {FUSED_ARGS[fused[0]]} extra arguments, "
                              f"given {attrs['num_args']}")
    output = forward(attrs, x, kernel)
    filters = dims_of_rank(output, 4, "output")[channels(attrs)]
    for arg in args[: attrs["num_args"]]:
        filters = same_dim(filters, dims_of_rank(arg, 1, "an extra argument")[0], "the filters and an extra argument")
    return output


@rule("Dilation2D")
def dilation2d(attrs: Attrs, x: ValueInfo, kernel: ValueInfo) -> ValueInfo:
    lengths, taps = dims_of_rank(x, 4, "input"), dims_of_rank(kernel, 3, "filter")
    depth = same_dim(lengths[3], taps[2], "the depths of input and filter")
    return info(x.dtype, slid(dilation_window(attrs), lengths, taps[:2], depth))


def dilation_window(attrs: Attrs) -> Attrs:
    """Return a dilation's attributes under the names of a convolution. Raises InvalidArgument."""
    for name in ("strides", "rates"):
        steps = attrs[name]
        if len(steps) != 4:
            raise InvalidArgument(f"{name} must be 4 numbers, given {list(steps)}")
        if steps[0] != 1 or steps[3] != 1:
            raise errors.Unimplemented(f"{name} are only supported across spatial dimensions, given {list(steps)}")
    return {**attrs, "dilations": attrs["rates"], "data_format": "NHWC"}


def input_gradient(forward: Forward, rank: int) -> Gradient:
    """Return the metadata function of a gradient for the input of `forward`; `input_sizes` is its shape."""

    def metadata(attrs: Attrs, sizes: ValueInfo, kernel: ValueInfo, gradient: ValueInfo) -> ValueInfo:
        taps, places = dims_of_rank(kernel, rank, "filter"), dims_of_rank(gradient, rank, "out_backprop")
        shape = _input_shape(attrs, lengths_in(sizes, rank, "input_sizes"), taps, places)
        _check_gradient(forward(attrs, info(gradient.dtype, shape), kernel), gradient)
        return info(gradient.dtype, shape)

    return metadata


def _input_shape(attrs: Attrs, sizes: Dims, taps: Dims, places: Dims) -> Dims:
    """Return the input's shape. The gradient supplies an open batch; height and width suffice for a 2-D convolution."""
    if len(sizes) == 2 and len(taps) == 4:
        last = attrs["data_format"][1] != "C"
        sizes = (places[0], *sizes, taps[2]) if last else (places[0], taps[2], *sizes)
    if len(sizes) != len(taps):
        raise InvalidArgument(f"input_sizes must have {len(taps)} elements, given {len(sizes)}")
    left_open = (-1, None) if len(sizes) == 4 and "use_cudnn_on_gpu" in attrs else (-1,)
    shape = (places[0] if sizes[0] in left_open else sizes[0], *sizes[1:])
    _check_sizes(shape, "input_sizes")
    return shape


def filter_gradient(forward: Forward, rank: int) -> Gradient:
    """Return the metadata function of a gradient for the filter of `forward`; `filter_sizes` is its shape."""

    def metadata(attrs: Attrs, x: ValueInfo, sizes: ValueInfo, gradient: ValueInfo) -> ValueInfo:
        dims_of_rank(x, rank, "input")
        dims_of_rank(gradient, rank, "out_backprop")
        shape = lengths_in(sizes, rank, "filter_sizes")
        if len(shape) != rank:
            raise InvalidArgument(f"filter_sizes must have {rank} elements, given {len(shape)}")
        _check_sizes(shape, "filter_sizes")
        _check_gradient(forward(attrs, x, info(x.dtype, shape)), gradient)
        return info(x.dtype, shape)

    return metadata


def _check_sizes(shape: Dims, name: str) -> None:
    if any(length is not None and length < 0 for length in shape):
        raise InvalidArgument(f"{name} must not be negative, given {shape_text(shape)}")


def _check_gradient(output: ValueInfo, gradient: ValueInfo) -> None:
    same_shape((output.shape, gradient.shape), "out_backprop does not have the shape of the output")


_FORWARD: dict[str, tuple[Forward, int, str]] = {
    "Conv2D": (conv2d, 4, ""), "DepthwiseConv2dNative": (depthwise_conv2d, 4, ""), "Conv3D": (conv3d, 5, "V2"),
}
for _op, (_forward, _rank, _version) in _FORWARD.items():
    rule(f"{_op}BackpropInput{_version}", values=("input_sizes",))(input_gradient(_forward, _rank))
    rule(f"{_op}BackpropFilter{_version}", values=("filter_sizes",))(filter_gradient(_forward, _rank))
