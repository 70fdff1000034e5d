"""Kernels on the colors of images: red, green and blue, or hue, saturation and value, in the last dimension."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import FLOATS, Array
from .extremes import larger, lesser

Run = Callable[..., None]


def _channels(images: Array) -> tuple[Array, Array, Array]:
    return images[..., 0], images[..., 1], images[..., 2]


def rgb_to_hsv(_: Bind) -> Run:
    """RGBToHSV in the images' own precision, as in TensorFlow."""

    def run(images: Array, out: Array) -> None:
        one, six = images.dtype.type(1), images.dtype.type(6)
        red, green, blue = _channels(images)
        least, greatest = lesser(blue, lesser(green, red)), larger(blue, larger(green, red))
        out[...] = np.stack(_hsv(images, least, greatest, lambda spread: (one / spread) * (one / six)), -1)

    return run


def _hsv(images: Array, least: Array, value: Array, sixth: Callable[[Array], Array]) -> tuple[Array, Array, Array]:
    """Hue, saturation and value, given the least and the greatest channel. `sixth` divides a sixth by the spread
    between these two."""
    number = images.dtype.type
    red, green, blue = _channels(images)
    spread = value - least
    saturation = np.where(value > 0, spread / value, number(0))
    norm = sixth(spread)
    third, two_thirds = number(2) / number(6), number(4) / number(6)
    hue = np.where(red == value, norm * (green - blue),
                   np.where(green == value, norm * (blue - red) + third, norm * (red - green) + two_thirds))
    hue = np.where(spread > 0, hue, number(0))
    return np.where(hue < 0, hue + number(1), hue), saturation, value


def hsv_to_rgb(_: Bind) -> Run:
    def run(images: Array, out: Array) -> None:
        number = images.dtype.type
        zero, one, two = number(0), number(1), number(2)
        hue, saturation, value = _channels(images)
        turn = hue * number(6)
        ramps = (abs(turn - number(3)) - one, two - abs(turn - two), two - abs(turn - number(4)))
        complement = one - saturation
        out[...] = np.stack([(complement + saturation * np.clip(ramp, zero, one)) * value for ramp in ramps], -1)

    return run


def adjust_contrast(b: Bind) -> Run:
    """AdjustContrast: scales the distance from the mean of each channel of each image."""
    rows, columns, _ = b.inputs[0].meta.dims[-3:]
    count = np.float32(rows * columns)

    def run(images: Array, factor: Array, out: Array) -> None:
        mean = np.add.reduce(images, (-3, -2), keepdims=True) / count
        np.multiply(images, factor, out)
        np.add(out, mean * (1 - factor), out)

    return run


HUE_SIXTHS = np.array(  # ranks (0: least) of red, green and blue in each sixth of the circle
    [(2, 1, 0), (1, 2, 0), (0, 2, 1), (0, 1, 2), (1, 0, 2), (2, 0, 1)])
HUE_LEVELS = HUE_SIXTHS.argsort(1)  # the channels by rank


def adjust_hue(_: Bind) -> Run:
    """AdjustHue. The least and the greatest channel change places; the middle one gives the position within a sixth."""

    def run(images: Array, delta: Array, out: Array) -> None:
        red, green, blue = _channels(images)
        sixth = np.where(red < green, np.where(blue < red, 1, np.where(blue > green, 3, 2)),
                         np.where(blue < green, 0, np.where(blue > red, 4, 5)))
        least, middle, greatest = _channels(np.take_along_axis(images, HUE_LEVELS[sixth], -1))
        spread = greatest - least
        part = (middle - least) / spread
        hue = sixth.astype(np.float32) + np.where(sixth % 2, 1 - part, part)
        hue = np.where(spread == 0, 0, hue) + delta * np.float32(6)
        hue = np.where((hue < 0) | (hue >= 6), np.mod(hue, np.float32(6)), hue)
        sixth = np.clip(np.nan_to_num(np.floor(hue), nan=5), 0, 5).astype(np.int64)
        part = hue - np.floor(hue)
        middle = least + np.where(sixth % 2, 1 - part, part) * spread
        levels = np.stack([least, middle, greatest], -1)
        out[...] = np.take_along_axis(levels, HUE_SIXTHS[sixth], -1)

    return run


def adjust_saturation(_: Bind) -> Run:
    def run(images: Array, scale: Array, out: Array) -> None:
        red, green, blue = _channels(images)
        least, greatest = lesser(red, lesser(green, blue)), larger(red, larger(green, blue))
        hue, saturation, value = _hsv(images, least, greatest, lambda spread: 1 / (np.float32(6) * spread))
        chroma = lesser(np.float32(1), larger(np.float32(0), saturation * scale)) * value
        turn = hue * np.float32(6)
        sixth = turn.astype(np.int64)
        second = chroma * (1 - abs(np.mod(turn, np.float32(2)) - 1))
        levels = np.stack([np.zeros_like(chroma), second, chroma], -1)
        has_hue = (sixth >= 0) & (sixth < 6)
        rgb = np.take_along_axis(levels, HUE_SIXTHS[np.where(has_hue, sixth, 0)], -1)
        out[...] = np.where(has_hue[..., None], rgb, 0) + (value - chroma)[..., None]

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind, types in (
        ("AdjustContrastv2", adjust_contrast, ("float32",)), ("AdjustHue", adjust_hue, ("float32",)),
        ("AdjustSaturation", adjust_saturation, ("float32",)), ("HSVToRGB", hsv_to_rgb, FLOATS),
        ("RGBToHSV", rgb_to_hsv, FLOATS),
    ):
        kernels.kernel(op, dtypes={"T": types}, inplace={0: 0})(bind)
