"""Metadata of ops on the colors of images."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, shape_text

from .rules import rule
from .shapes import dims_of_rank, same_dim


@rule("HSVToRGB", "RGBToHSV")
def convert_color(_: Attrs, images: ValueInfo) -> ValueInfo:
    return _info_of_rgb(images, 1)


@rule("AdjustHue", "AdjustSaturation")
def adjust_color(_: Attrs, images: ValueInfo, amount: ValueInfo) -> ValueInfo:
    dims_of_rank(amount, 0, "the amount")
    return _info_of_rgb(images, 3)


@rule("AdjustContrastv2")
def adjusted_contrast(_: Attrs, images: ValueInfo, factor: ValueInfo) -> ValueInfo:
    dims_of_rank(factor, 0, "contrast_factor")
    _check_rank(images, 3)
    return ValueInfo(images.meta)


def _info_of_rgb(images: ValueInfo, least: int) -> ValueInfo:
    _check_rank(images, least)
    if images.shape is not None:
        same_dim(images.shape[-1], 3, "the last dimension of images and 3 (channels)")
    return ValueInfo(images.meta)


def _check_rank(images: ValueInfo, least: int) -> None:
    if images.rank is not None and images.rank < least:
        raise InvalidArgument(f"images must have at least rank {least}, given shape {shape_text(images.shape)}")
