"""Metadata of ops that treat all positions of a channel alike: bias, batch and response normalisation."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, info, shape_text

from .rules import rule
from .shapes import Dims, dims_of_rank, same_dim, same_shape


@rule("BiasAdd", "BiasAddV1")
def bias_add(attrs: Attrs, x: ValueInfo, bias: ValueInfo) -> ValueInfo:
    (length,) = dims_of_rank(bias, 1, "bias")
    if x.shape is None:
        return info(x.dtype, None)
    return info(x.dtype, _with_channels(x.shape, _bias_axis(attrs, x.shape), length, "bias"))


@rule("BiasAddGrad")
def bias_add_gradient(attrs: Attrs, gradient: ValueInfo) -> ValueInfo:
    shape = gradient.shape
    return info(gradient.dtype, (None if shape is None else shape[_bias_axis(attrs, shape)],))


def _bias_axis(attrs: Attrs, shape: Dims) -> int:
    if len(shape) < 2:
        raise InvalidArgument(f"Input tensor must be at least 2D: {shape_text(shape)}")
    return 1 if attrs.get("data_format") == "NCHW" else -1


def _with_channels(shape: Dims, axis: int, length: int | None, name: str) -> Dims:
    dims = list(shape)
    dims[axis] = same_dim(dims[axis], length, f"the channels of the input and the elements of {name}")
    return tuple(dims)


@rule("BatchNormWithGlobalNormalization")
def global_batch_norm(_: Attrs, x: ValueInfo, *parameters: ValueInfo) -> ValueInfo:
    shape = dims_of_rank(x, 4, "input")
    for name, parameter in zip(("mean", "variance", "beta", "gamma"), parameters, strict=True):
        (length,) = dims_of_rank(parameter, 1, name)
        shape = _with_channels(shape, -1, length, name)
    return info(x.dtype, shape)


@rule("FusedBatchNorm", "FusedBatchNormV2")
def fused_batch_norm(attrs: Attrs, x: ValueInfo, *parameters: ValueInfo) -> tuple[ValueInfo, ...]:
    if x.rank not in (None, 4, 5):
        raise InvalidArgument(f"input must be 4 or 5-dimensional, given {shape_text(x.shape)}")
    axis = 1 if attrs["data_format"][1] == "C" else -1
    channels = None if x.shape is None else x.shape[axis]
    whole_batch = attrs["is_training"] and attrs["exponential_avg_factor"] == 1.0  # mean and variance are not read
    for name, parameter in zip(("scale", "offset", "mean", "variance"), parameters, strict=True):
        (length,) = dims_of_rank(parameter, 1, name)
        if name in ("scale", "offset") or not whole_batch:
            channels = same_dim(channels, length, f"the channels of x and the elements of {name}")
    y = info(x.dtype, None if x.shape is None else _with_channels(x.shape, axis, channels, "scale"))
    return (y, *(info(parameters[0].dtype, (channels,)) for _ in range(4)))


@rule("FusedBatchNormV3")
def fused_batch_norm_v3(attrs: Attrs, x: ValueInfo, *parameters: ValueInfo) -> tuple[ValueInfo, ...]:
    """The third reserve space is a scalar here; TensorFlow leaves its shape open."""
    return (*fused_batch_norm(attrs, x, *parameters), info(parameters[0].dtype, ()))


@rule("_FusedBatchNormEx")
def fused_batch_norm_ex(attrs: Attrs, x: ValueInfo, *others: ValueInfo) -> tuple[ValueInfo, ...]:
    """Fuses batch normalisation, an optional added tensor of the same shape, and an optional activation."""
    dims_of_rank(x, 4, "x")
    if attrs["activation_mode"] not in ("Identity", "Relu"):
        raise InvalidArgument(f"Unsupported activation mode: {attrs['activation_mode']}")
    if attrs["num_side_inputs"] > 1:
        raise InvalidArgument("FusedBatchNorm accepts at most one side input.")
    y, *statistics = fused_batch_norm_v3(attrs, x, *others[:4])
    channels = statistics[0].shape
    if channels is not None and channels[0] is not None and channels[0] % 4:
        raise InvalidArgument(f"channel dimension must be divisible by 4, but is {channels[0]}")
    shapes = [y.shape, *(side.shape for side in others[4:])]
    return (info(y.dtype, same_shape(shapes, "side_input must have the shape of x")), *statistics)


@rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_gradient(
    attrs: Attrs, gradient: ValueInfo, x: ValueInfo, *parameters: ValueInfo
) -> tuple[ValueInfo, ...]:
    """Return the gradients for the input, scale and offset; the other two outputs are empty."""
    rank, dtype = len(attrs["data_format"]), parameters[0].dtype
    for name, image in (("y_backprop", gradient), ("x", x)):
        dims_of_rank(image, rank, name)
    shape = same_shape((gradient.shape, x.shape), "y_backprop and x must have the same shape") or (None,) * rank
    channels = shape[attrs["data_format"].index("C")]
    for name, parameter in zip(("scale", "reserve_space_1", "reserve_space_2"), parameters, strict=False):
        (length,) = dims_of_rank(parameter, 1, name)
        channels = same_dim(channels, length, f"the channels of x and the elements of {name}")
    vector, nothing = info(dtype, (channels,)), info(dtype, (0,))
    return info(x.dtype, shape), vector, vector, nothing, nothing


@rule("LRN")
def response_normalisation(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    if not 0 <= attrs["depth_radius"] < 2**31:
        raise InvalidArgument(f"depth_radius must not be negative nor exceed an int, given {attrs['depth_radius']}")
    return info(x.dtype, dims_of_rank(x, 4, "input"))


@rule("LRNGrad")
def response_normalisation_gradient(attrs: Attrs, *images: ValueInfo) -> ValueInfo:
    shapes = [response_normalisation(attrs, x).shape for x in images]
    return info(images[0].dtype, same_shape(shapes, "gradient, input and output must have the same shape"))
