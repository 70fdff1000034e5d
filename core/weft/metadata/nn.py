"""Metadata of ops that treat all positions of a channel alike: bias, batch and response normalisation."""

from __future__ import annotations

from ..errors import InvalidArgument
from ..op import Attrs
from ..tensor import ValueInfo, info, shape_text
from .rules import rule
from .shapes import Dims, ranked, same_dim


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
