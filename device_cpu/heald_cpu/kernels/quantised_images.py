"""Kernels of quantised images that published graphs have beside convolutions: normalisation and resizing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, dtypes, errors

from ..element_types import Array
from ..quantised import F32, INT32, Levels, integers_of, single, store
from . import resize

Run = Callable[..., None]
ONE = 1 << 7  # in weights of resized bytes
LARGEST_OUTPUT = 1 << 20  # the range of normalised values, with 11 bits behind the point


def batch_norm(b: Bind) -> Run:
    """QuantizedBatchNormWithGlobalNormalization: a scale and an offset for each channel, in fixed point."""
    levels, epsilon = Levels.of(b.attrs["Tinput"]), F32(b.attrs["variance_epsilon"])
    is_scaled, ends = b.attrs["scale_after_normalization"], (F32(-LARGEST_OUTPUT), F32(LARGEST_OUTPUT))

    def run(*arrays: Array) -> None:
        inputs, (out, low_out, high_out) = arrays[:15], arrays[15:]
        image, mean, variance, beta, gamma = (
            levels.to_float(integers_of(inputs[i]), single(inputs[i + 1]), single(inputs[i + 2]))
            for i in range(0, 15, 3))
        scale = F32(1) / np.sqrt(variance + epsilon)
        if is_scaled:
            scale = scale * gamma
        offset = -mean * scale + beta
        one = INT32.to_integer(1.0, *ends)
        product = INT32.to_integer(image, *ends) * INT32.to_integer(scale, *ends)
        wrapped = product.astype(np.int32).astype(np.int64)
        quotient = np.trunc(wrapped / one).astype(np.int64)
        np.copyto(integers_of(out), quotient + INT32.to_integer(offset, *ends), casting="unsafe")
        low_out[...], high_out[...] = ends

    return run


def instance_norm(b: Bind) -> Run:
    """QuantizedInstanceNorm: each channel of each image by itself."""
    levels, attrs = Levels.of(b.attrs["T"]), b.attrs
    epsilon, separation = F32(attrs["variance_epsilon"]), F32(attrs["min_separation"])
    given = (F32(attrs["given_y_min"]), F32(attrs["given_y_max"])) if attrs["output_range_given"] else None

    def run(x: Array, minimum: Array, maximum: Array, out: Array, low_out: Array, high_out: Array) -> None:
        low, high = single(minimum), single(maximum)
        if not low < high:
            raise errors.InvalidArgument(f"input_min must be less than input_max : {low} >= {high}")
        integers = integers_of(x).astype(np.float64)  # whose mean is exact, so that equal pixels are no noise
        centred = (integers - _mean(integers)).astype(F32) * levels.step(low, high)
        variance = _mean(np.square(centred))
        normalised = centred * (F32(1) / np.sqrt(variance + epsilon))  # of both, nearer to TensorFlow's bits
        least, greatest = given or _separated(normalised, separation)
        store(levels.to_integers(normalised, least, greatest), out)
        low_out[...], high_out[...] = least, greatest

    return run


def _mean(images: Array) -> Array:
    """The mean of each channel of each image; 0 of no pixels, without a warning."""
    mean: Array = images.sum((1, 2), keepdims=True) / images.dtype.type(max(1, images.shape[1] * images.shape[2]))
    return mean


def _separated(normalised: Array, separation: Any) -> tuple[Any, Any]:
    """The lowest and the highest number, at least so far apart; infinity of no numbers."""
    least = np.fmin.reduce(normalised, None, initial=F32(np.inf))
    return least, max(np.fmax.reduce(normalised, None, initial=F32(-np.inf)), least + separation)


def resize_bilinear(b: Bind) -> Run:
    """QuantizedResizeBilinear of bytes, with weights of 7 bits; of floats, as ResizeBilinear."""
    if b.attrs["T"] is dtypes.float32:
        return _with_same_range(resize.resize_bilinear(b))
    image, resized = b.inputs[0].meta.dims, b.outputs[0].dims
    b.ask(resize.PLACE_BYTES * sum((*image[1:3], *resized[1:3])), "the places of rows and columns")
    top, bottom, down = _fixed_weights(b, image[1], resized[1])
    left, right, across = _fixed_weights(b, image[2], resized[2])

    def run(x: Array, _size: Array, out: Array) -> None:
        rows = integers_of(x).astype(np.int32)
        first, second = (_between(rows[:, at][:, :, left], rows[:, at][:, :, right], across[None, None, :, None])
                         for at in (top, bottom))
        total = first + _divide(second - first) * down[None, :, None, None]
        np.copyto(integers_of(out), _divide(total + ONE // 2), casting="unsafe")

    return _with_same_range(run)


def _with_same_range(resize_images: Callable[..., Any]) -> Run:
    def run(x: Array, size: Array, minimum: Array, maximum: Array, *outs: Array) -> None:
        out, low_out, high_out = outs
        resize_images(x, size, out)
        low_out[...], high_out[...] = minimum, maximum

    return run


def _fixed_weights(b: Bind, length: int, size: int) -> tuple[Array, Array, Array]:
    lower, upper, weights = resize.between_pixels(b.attrs, length, size)
    return lower, upper, (weights * ONE).astype(np.int32)


def _between(first: Array, second: Array, weights: Array) -> Any:
    return first * ONE + (second - first) * weights


def _divide(numbers: Array) -> Any:
    """The quotients by ONE, toward zero."""
    return np.sign(numbers) * (np.abs(numbers) // ONE)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("QuantizedBatchNormWithGlobalNormalization", dtypes={"Tinput": "quint8", "out_type": "qint32"})(
        batch_norm)
    kernels.kernel("QuantizedResizeBilinear", dtypes={"T": ("quint8", "float32")})(resize_bilinear)
    kernels.kernel("QuantizedInstanceNorm", dtypes={"T": "quint8"})(instance_norm)
