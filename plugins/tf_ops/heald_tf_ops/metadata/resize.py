"""Metadata of ops that resample images: resizes, their gradients, crops and projections."""

from __future__ import annotations

from math import ceil

import numpy as np
from heald.api import Attrs, InvalidArgument, Shape, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import Dims, dims_of_rank, same_dim, vector

KERNEL_TYPES = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
INTERPOLATIONS = ("NEAREST", "BILINEAR")
NOISES = ("gaussian", "uniform", "zero")
FILL_MODES = ("REFLECT", "WRAP", "CONSTANT", "NEAREST")


@rule("ResizeArea", "ResizeBicubic", "ResizeBilinear", values=("size",))
def resize(attrs: Attrs, images: ValueInfo, size: ValueInfo) -> ValueInfo:
    """The output is float32 for images of any type."""
    return info(dtypes.float32, resized_dims(attrs, images, size))


@rule("ExtractGlimpse", "ExtractGlimpseV2", values=("size",))
def extract_glimpse(attrs: Attrs, images: ValueInfo, size: ValueInfo, offsets: ValueInfo) -> ValueInfo:
    batch, _height, _width, channels = dims_of_rank(images, 4, "input")
    noise = attrs["noise"]
    if noise not in ("", *NOISES):
        raise InvalidArgument(f"The noise could only be uniform, gaussian, or zero, got {noise}")
    if attrs["uniform_noise"] and noise not in ("", "uniform"):
        raise InvalidArgument("The uniform_noise and noise could not be specified at the same time")
    same_dim(dims_of_rank(size, 1, "size")[0], 2, "the elements of size and 2")
    points, axes = dims_of_rank(offsets, 2, "offsets")
    same_dim(axes, 2, "the columns of offsets and 2")
    lengths = vector(size, "size") or (None, None)
    if any(length is not None and length < 0 for length in lengths):
        raise InvalidArgument(f"size must be non-negative, got {list(lengths)}")
    return info(dtypes.float32, (same_dim(batch, points, "the batches of input and offsets"), *lengths, channels))


@rule("ResizeNearestNeighbor", values=("size",))
def resize_nearest_neighbor(attrs: Attrs, images: ValueInfo, size: ValueInfo) -> ValueInfo:
    return info(images.dtype, resized_dims(attrs, images, size))


def resized_dims(attrs: Attrs, images: ValueInfo, size: ValueInfo) -> Dims:
    _check_centers(attrs)
    batch, height, width, channels = _images(images)
    if channels == 0:
        raise InvalidArgument("image must have at least one channel")
    rows, columns = sizes = _sizes(size, "size")
    for length, requested_length in ((height, rows), (width, columns)):
        if length is not None and requested_length is not None and _scaled_up_past_int64(length, requested_length):
            raise InvalidArgument("input image scale would cause an overflow")
    return (batch, *sizes, channels)


def _scaled_up_past_int64(length: int, size: int) -> bool:
    return ceil((size - 1) * np.float32(length) / np.float32(size)) > 2**63 - 1


def _check_centers(attrs: Attrs) -> None:
    if attrs.get("half_pixel_centers") and attrs["align_corners"]:
        raise InvalidArgument("If half_pixel_centers is True, align_corners must be False")


def _images(x: ValueInfo, name: str = "input") -> Dims:
    shape = dims_of_rank(x, 4, name)
    if 0 in shape[1:3]:
        raise InvalidArgument(f"{name} image must be of non-zero size, given shape {shape_text(shape)}")
    return shape


def _sizes(size: ValueInfo, name: str) -> Dims:
    """Return height and width from an input of two positive numbers."""
    lengths = vector(size, name)
    if lengths is None:
        return (None, None)
    if len(lengths) != 2:
        raise InvalidArgument(f"{name} must have two elements, given {len(lengths)}")
    if any(n is not None and n <= 0 for n in lengths):
        raise InvalidArgument(f"{name}: output dimensions must be positive, given {list(lengths)}")
    return lengths


@rule("ResizeNearestNeighborGrad", values=("size",))
def resize_nearest_neighbor_grad(_attrs: Attrs, grads: ValueInfo, size: ValueInfo) -> ValueInfo:
    batch, _, _, channels = dims_of_rank(grads, 4, "input")
    return info(grads.dtype, (batch, *_sizes(size, "size"), channels))


@rule("ResizeBicubicGrad", "ResizeBilinearGrad")
def resize_grad(attrs: Attrs, grads: ValueInfo, original: ValueInfo) -> ValueInfo:
    _check_centers(attrs)
    batch, _, _, channels = _images(grads, "input_grad")
    _, height, width, _ = dims_of_rank(original, 4, "original_image")
    if 0 in (height, width):
        raise InvalidArgument(f"original dimensions must be positive, given {shape_text(original.shape)}")
    return info(original.dtype, (batch, height, width, channels))


@rule("ScaleAndTranslate", values=("size",))
def scale_and_translate(
    attrs: Attrs, images: ValueInfo, size: ValueInfo, scale: ValueInfo, translation: ValueInfo
) -> ValueInfo:
    _check_scaling(attrs, scale, translation)
    batch, _, _, channels = _images(images)
    return info(dtypes.float32, (batch, *_sizes(size, "size"), channels))


@rule("ScaleAndTranslateGrad")
def scale_and_translate_grad(
    attrs: Attrs, grads: ValueInfo, original: ValueInfo, scale: ValueInfo, translation: ValueInfo
) -> ValueInfo:
    _check_scaling(attrs, scale, translation)
    batch, _, _, channels = dims_of_rank(grads, 4, "input_grad")
    _, height, width, _ = _images(original, "original_image")
    return info(dtypes.float32, (batch, height, width, channels))


def _check_scaling(attrs: Attrs, scale: ValueInfo, translation: ValueInfo) -> None:
    _check_among(attrs, "kernel_type", KERNEL_TYPES)
    for x, name in ((scale, "scale"), (translation, "translation")):
        same_dim(dims_of_rank(x, 1, name)[0], 2, f"the elements of {name} and 2")


def _check_among(attrs: Attrs, name: str, allowed: tuple[str, ...]) -> None:
    if attrs[name] not in allowed:
        raise InvalidArgument(f"{name} {attrs[name]!r} is not among {', '.join(allowed)}")


@rule("CropAndResize", values=("crop_size",))
def crop_and_resize(
    _: Attrs, image: ValueInfo, boxes: ValueInfo, box_index: ValueInfo, crop_size: ValueInfo
) -> ValueInfo:
    *_rest, channels = _images(image)
    return info(dtypes.float32, (_boxes(boxes, box_index), *_sizes(crop_size, "crop_size"), channels))


def _boxes(boxes: ValueInfo, box_index: ValueInfo) -> int | None:
    """Return the number of boxes."""
    count, columns = dims_of_rank(boxes, 2, "boxes")
    same_dim(columns, 4, "the columns of boxes and 4")
    (indices,) = dims_of_rank(box_index, 1, "box_index")
    return same_dim(count, indices, "the rows of boxes and the elements of box_index")


@rule("ImageProjectiveTransformV2", "ImageProjectiveTransformV3", values=("output_shape",))
def image_projective_transform(
    attrs: Attrs, images: ValueInfo, transforms: ValueInfo, output_shape: ValueInfo, *fill_value: ValueInfo
) -> ValueInfo:
    _check_among(attrs, "interpolation", INTERPOLATIONS)
    _check_among(attrs, "fill_mode", FILL_MODES)
    batch, _, _, channels = dims_of_rank(images, 4, "images")
    rows, columns = dims_of_rank(transforms, 2, "transforms")
    same_dim(columns, 8, "the columns of transforms and 8")
    if rows != 1:
        same_dim(rows, batch, "the rows of transforms, unless there is one, and the number of images")
    for x in fill_value:
        dims_of_rank(x, 0, "fill_value")
    shape: Shape = (batch, *_sizes(output_shape, "output_shape"), channels)
    return info(images.dtype, shape)
