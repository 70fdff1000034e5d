"""Metadata of pooling and its gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from heald.api import (
    Attrs,
    InvalidArgument,
    Shape,
    TensorMetadata,
    ValueInfo,
    dtypes,
    errors,
    geometry,
    info,
    shape_text,
)

from .conv import channels, slid
from .rules import rule
from .shapes import Dims, dims_of_rank, elements_in, lengths_in, same_dim, same_shape, vector


@rule("AvgPool", "MaxPool")
def pool(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return info(x.dtype, _pooled_lengths(attrs, dims_of_rank(x, 4, "input")))


@rule("AvgPool3D", "MaxPool3D")
def pool3d(attrs: Attrs, x: ValueInfo) -> ValueInfo:
    return info(x.dtype, _pooled_lengths(attrs, dims_of_rank(x, 5, "input")))


def _pooled_lengths(attrs: Attrs, lengths: Dims) -> Dims:
    """Strides apply along the spatial dimensions, or along the depth alone if its window is longer than 1."""
    taps, first, c = attrs["ksize"], geometry.first_spatial(attrs["data_format"]), channels(attrs)
    _check_taps(taps, len(lengths))
    spatial = slice(first, first + len(lengths) - 2)
    for pad, side in zip(attrs.get("explicit_paddings", ())[2 * first :], (0, 0, 1, 1), strict=False):
        if pad >= taps[first + side]:
            raise InvalidArgument(f"padding {pad} needs to be smaller than the window size {taps[first + side]}")
    shape, depth = slid(attrs, lengths, taps[spatial], None), lengths[c]
    if taps[c] > 1:
        shape, depth = lengths, geometry.window(depth, taps[c], attrs["strides"][c]).size
    return (*shape[:c], depth, *shape[c + 1 :])


def _check_taps(taps: Sequence[int], rank: int) -> None:
    if len(taps) != rank or min(taps) < 1:
        raise InvalidArgument(f"ksize must be {rank} positive numbers, given {list(taps)}")


@rule("MaxPoolV2", values=("ksize", "strides"))
def pool_v2(attrs: Attrs, x: ValueInfo, ksize: ValueInfo, strides: ValueInfo) -> ValueInfo:
    """`ksize` and `strides` are inputs."""
    dims_of_rank(x, 4, "input")
    vectors = [vector(i, name) for i, name in ((ksize, "ksize"), (strides, "strides"))]
    for elements, name in zip(vectors, ("ksize", "strides"), strict=True):
        if elements is not None and len(elements) != 4:
            raise InvalidArgument(f"{name} must have 4 elements, given {len(elements)}")
    if any(elements is None or None in elements for elements in vectors):
        return info(x.dtype, (None,) * 4)
    return pool({**attrs, "ksize": vectors[0], "strides": vectors[1]}, x)


@rule("FractionalAvgPool", "FractionalMaxPool")
def fractional_pool(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ...]:
    """Return the output, and the sequences of first rows and columns, which have an element more than the output."""
    lengths, ratios = dims_of_rank(x, 4, "value"), attrs["pooling_ratio"]
    _check_ratios(ratios)
    if not attrs["deterministic"] and (attrs["seed"] or attrs["seed2"]):
        raise InvalidArgument("Both seed and seed2 should be 0 if deterministic is false.")
    for axis, (length, ratio) in enumerate(zip(lengths, ratios, strict=True)):
        if length is not None and length < ratio:
            raise InvalidArgument(f"Pooling ratio {ratio} is higher than input dimension size {length} for dimension "
                                  f"{axis}")
    shape = tuple(None if length is None else int(length / np.float32(ratio))
                  for length, ratio in zip(lengths, ratios, strict=True))
    sequences = [info(dtypes.int64, (None if length is None else length + 1,)) for length in shape[1:3]]
    return info(x.dtype, shape), *sequences


def _check_ratios(ratios: Sequence[float]) -> None:
    if len(ratios) != 4:
        raise InvalidArgument(f"pooling_ratio field must specify 4 dimensions, given {list(ratios)}")
    for ratio in ratios:
        if not ratio >= 1:
            raise InvalidArgument(f"pooling_ratio cannot be smaller than 1, got: {ratio}")
    if ratios[0] != 1 or ratios[3] != 1:
        raise errors.Unimplemented("fractional pooling of batches or channels is not implemented")


@rule("FractionalMaxPoolGrad")
def fractional_max_pool_gradient(
    _: Attrs, x: ValueInfo, output: ValueInfo, gradient: ValueInfo, *sequences: ValueInfo
) -> ValueInfo:
    shape = dims_of_rank(x, 4, "orig_input")
    dims_of_rank(output, 4, "orig_output")
    pooled = same_shape((output.shape, gradient.shape), "orig_output and out_backprop must have the same shape")
    _check_sequences(shape, pooled, sequences)
    return info(gradient.dtype, shape)


@rule("FractionalAvgPoolGrad", values=("orig_input_tensor_shape",))
def fractional_avg_pool_gradient(
    _: Attrs, sizes: ValueInfo, gradient: ValueInfo, *sequences: ValueInfo
) -> ValueInfo:
    shape = lengths_in(sizes, 4, "orig_input_tensor_shape")
    if len(shape) != 4 or any(length is not None and length < 1 for length in shape):
        raise InvalidArgument(f"orig_input_tensor_shape must be 4 positive lengths, given {shape_text(shape)}")
    _check_sequences(shape, dims_of_rank(gradient, 4, "out_backprop"), sequences)
    return info(gradient.dtype, shape)


def _check_sequences(shape: Dims, pooled: Shape, sequences: Sequence[ValueInfo]) -> None:
    """Raise InvalidArgument unless each sequence has an element more than the output, or further ones."""
    lengths = (None,) * 4 if pooled is None else pooled
    for axis in (0, 3):
        same_dim(shape[axis], lengths[axis], f"lengths of the input's and the output's dimension {axis}")
    if elements_in(pooled) == 0:
        raise InvalidArgument(f"out_backprop must be positive for all dimensions, given {shape_text(pooled)}")
    for sequence, length, name in zip(sequences, lengths[1:3], ("row", "col"), strict=True):
        (count,) = dims_of_rank(sequence, 1, f"{name}_pooling_sequence")
        if count is not None and count < (1 if length is None else length + 1):
            raise InvalidArgument(f"{name}_pooling_sequence must have at least "
                                  f"{'1 element' if length is None else f'{length + 1} elements'}, given {count}")


@rule("MaxPoolWithArgmax")
def pool_with_argmax(attrs: Attrs, x: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    if elements_in(x.shape) == 0:
        raise InvalidArgument(f"input must not be empty, given {shape_text(x.shape)}")
    output = pool({**attrs, "data_format": "NHWC"}, x)
    return output, ValueInfo(TensorMetadata(attrs["Targmax"], output.shape))


@rule("MaxPoolGrad", "MaxPool3DGrad")
def max_pool_gradient(attrs: Attrs, x: ValueInfo, output: ValueInfo, gradient: ValueInfo) -> ValueInfo:
    pooled = _pooled_lengths(attrs, dims_of_rank(x, len(attrs["data_format"]), "orig_input"))
    same_shape((pooled, output.shape, gradient.shape), "orig_output and grad must have the shape of the output")
    return info(gradient.dtype, x.shape or (None,) * len(pooled))


@rule("AvgPoolGrad", "AvgPool3DGrad", values=("orig_input_shape",))
def avg_pool_gradient(attrs: Attrs, sizes: ValueInfo, gradient: ValueInfo) -> ValueInfo:
    rank = len(attrs["data_format"])
    dims_of_rank(gradient, rank, "grad")
    shape = lengths_in(sizes, rank, "orig_input_shape")
    if len(shape) != rank or any(length is not None and length < 0 for length in shape):
        raise InvalidArgument(f"orig_input_shape must be {rank} lengths, given {shape_text(shape)}")
    same_shape((_pooled_lengths(attrs, shape), gradient.shape), "grad must have the shape of the output")
    return info(gradient.dtype, shape)
