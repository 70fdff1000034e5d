"""Kernels that sample images at given positions: crops of boxes, and projective transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import SIGNED, Array

Run = Callable[..., None]
f32 = np.float32
BLOCK_BYTES = 1 << 18  # pixels of a block of crops stay in the second-level cache
CROPPED = (*SIGNED, "uint8", "uint16", "float16", "float32", "float64")


def crop_and_resize(b: Bind) -> Run:
    """CropAndResize, in blocks of boxes whose pixels stay in the cache."""
    batch, height, width, channels = b.inputs[0].meta.dims
    count, rows, columns, _ = b.outputs[0].dims
    sample = {"bilinear": _bilinear_crops, "nearest": _nearest_crops}[b.attrs["method"]]
    outside = f32(b.attrs["extrapolation_value"])
    together = max(1, BLOCK_BYTES // max(1, 4 * rows * columns * channels))
    blocks = [slice(first, first + together) for first in range(0, count, together)]

    def run(image: Array, boxes: Array, box_index: Array, _size: Array, out: Array) -> None:
        _check_boxes(boxes, box_index, batch)
        if out.size == 0:
            return
        y = _crop_places(boxes[:, 0], boxes[:, 2], height, rows)
        x = _crop_places(boxes[:, 1], boxes[:, 3], width, columns)
        inside = _inside(y, height)[:, :, None] & _inside(x, width)[:, None]
        y, x = np.clip(y, 0, height - 1)[:, :, None], np.clip(x, 0, width - 1)[:, None]
        read = _Pixels(image, box_index[:, None, None])
        for block in blocks:
            sample(read.of(block), y[block], x[block], out[block])
        out[~inside] = outside

    return run


def _check_boxes(boxes: Array, box_index: Array, batch: int) -> None:
    if ((box_index < 0) | (box_index >= batch)).any():
        raise errors.OutOfRange(f"box_index has values outside [0, {batch})")
    if not np.isfinite(boxes).all():
        raise errors.InvalidArgument("boxes contains at least one element that is not finite")


def _crop_places(first: Array, last: Array, length: int, size: int) -> Array:
    """The positions of each box's outputs along one axis. A single output lies in the middle."""
    if size == 1:
        return (f32(0.5) * (first + last) * f32(length - 1))[:, None]
    scale = (last - first) * f32(length - 1) / f32(size - 1)
    at: Array = (first * f32(length - 1))[:, None] + np.arange(size, dtype=f32) * scale[:, None]
    return at


def _inside(at: Array, length: int) -> Array:
    return (at >= 0) & (at <= length - 1)


class _Pixels:
    """Reads pixels by row and column. `which`: the image index of each pixel."""

    def __init__(self, images: Array, which: Array) -> None:
        self._images, self._which = images, which
        self._flat = images.reshape(-1, images.shape[3])

    def of(self, block: slice) -> _Pixels:
        return _Pixels(self._images, self._which[block])

    def __call__(self, row: Array, column: Array) -> Array:
        _, height, width, _ = self._images.shape
        pixels: Array = self._flat.take((self._which.astype(np.int64) * height + row) * width + column, 0)
        return pixels


def _bilinear_crops(read: _Pixels, y: Array, x: Array, out: Array) -> None:
    top, bottom, left, right = (edge(at).astype(np.int64) for at in (y, x) for edge in (np.floor, np.ceil))
    down, across = ((at - np.floor(at))[..., None] for at in (y, x))

    def between(row: Array) -> Any:
        start = read(row, left).astype(f32, copy=False)
        end = np.subtract(read(row, right), start, dtype=f32, casting="unsafe")
        end *= across
        return np.add(start, end, end)

    above = between(top)
    np.subtract(between(bottom), above, out)
    np.multiply(out, down, out)
    np.add(out, above, out)


def _nearest_crops(read: _Pixels, y: Array, x: Array, out: Array) -> None:
    np.copyto(out, read(*(_round(at).astype(np.int64) for at in (y, x))), casting="unsafe")


# Projections


def _reflect(at: Array, length: int) -> Array:
    """dcba|abcd|dcba"""
    if length <= 1:
        return np.zeros_like(at)
    period = f32(2 * length)
    low = np.where(at < period, period * np.trunc(-at / period) + at, at)
    low = np.where(low < -length, low + period, -low - f32(1))
    high = at - period * np.trunc(at / period)
    high = np.where(high >= length, period - high - f32(1), high)
    return np.clip(np.where(at < 0, low, np.where(at > length - 1, high, at)), 0, length - 1)


def _wrap(at: Array, length: int) -> Array:
    """abcd|abcd|abcd"""
    if length <= 1:
        return np.zeros_like(at)
    low = at + f32(length) * (np.trunc(-at / f32(length - 1)) + f32(1))
    high = at - f32(length) * np.trunc(at / f32(length - 1))
    return np.clip(np.where(at < 0, low, np.where(at > length - 1, high, at)), 0, length - 1)


FILL_MODES: dict[str, Callable[[Array, int], Array]] = {
    "CONSTANT": lambda at, _: at, "NEAREST": lambda at, length: np.clip(at, 0, length - 1), "REFLECT": _reflect,
    "WRAP": _wrap,
}


def image_projective_transform(b: Bind) -> Run:
    batch, height, width, _ = b.inputs[0].meta.dims
    _, rows, columns, _ = b.outputs[0].dims
    mapped, is_padded = FILL_MODES[b.attrs["fill_mode"]], b.attrs["fill_mode"] == "CONSTANT"
    sample = {"BILINEAR": _bilinear, "NEAREST": _nearest}[b.attrs["interpolation"]]
    y, x = np.arange(rows, dtype=f32)[None, :, None], np.arange(columns, dtype=f32)[None, None]
    together = max(1, BLOCK_BYTES // max(1, 4 * max(height * width, rows * columns)))
    blocks = [slice(first, first + together) for first in range(0, batch, together)]

    def run(images: Array, transforms: Array, _shape: Array, *fill_and_out: Array) -> None:
        *fill_values, out = fill_and_out
        fill = np.asarray(fill_values[0] if fill_values else 0).astype(out.dtype)
        if not out.size or not (images.size or is_padded):  # outside of no image there is its border
            out.fill(fill)
            return
        parameters = transforms.T[:, :, None, None]
        for block in blocks:
            t = parameters if parameters.shape[1] == 1 else parameters[:, block]
            projection = t[6] * x + t[7] * y + f32(1)
            across = mapped((t[0] * x + t[1] * y + t[2]) / projection, width)
            down = mapped((t[3] * x + t[4] * y + t[5]) / projection, height)
            np.copyto(out[block], sample(_Padded(images[block], fill), down, across), casting="unsafe")
            endless = projection == 0
            if endless.any():
                np.copyto(out[block], fill, where=endless[..., None])

    return run


class _Padded:
    """Images with a border of the fill value. A position outside reads the border."""

    def __init__(self, images: Array, fill: Array) -> None:
        batch, self._height, self._width, channels = images.shape
        padded = np.full((batch, self._height + 2, self._width + 2, channels), fill)
        padded[:, 1:-1, 1:-1] = images
        self._first: Array = np.arange(batch)[:, None, None] * ((self._height + 2) * (self._width + 2))
        self._pixels = padded.reshape(-1, channels)

    def rows(self, at: Array) -> Array:
        """The index of the first pixel of each row. NaN is outside."""
        first_pixels: Array = self._first + _outside_is_next(at, self._height) * (self._width + 2)
        return first_pixels

    def columns(self, at: Array) -> Array:
        return _outside_is_next(at, self._width)

    def __call__(self, row: Array, column: Array) -> Array:
        pixels: Array = self._pixels.take(row + column, 0, mode="clip")
        return pixels


def _outside_is_next(at: Array, length: int) -> Array:
    return np.fmax(np.fmin(at, f32(length)), f32(-1)).astype(np.int64) + 1


def _nearest(read: _Padded, y: Array, x: Array) -> Array:
    return read(read.rows(_round(y)), read.columns(_round(x)))


def _round(at: Array) -> Array:
    """Round half away from zero."""
    wide = at.astype(np.float64)
    return np.trunc(wide + np.copysign(0.5, wide))


def _bilinear(read: _Padded, y: Array, x: Array) -> Array:
    top, left = np.floor(y), np.floor(x)
    bottom, right = top + f32(1), left + f32(1)
    first_column, next_column = read.columns(left), read.columns(right)

    def between(row: Array) -> Array:
        before: Array = read(row, first_column).astype(f32, copy=False)
        after = read(row, next_column).astype(f32, copy=False)
        before *= (right - x)[..., None]
        after *= (x - left)[..., None]
        before += after
        return before

    above, below = between(read.rows(top)), between(read.rows(bottom))
    above *= (bottom - y)[..., None]
    below *= (y - top)[..., None]
    above += below
    return above


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("CropAndResize", dtypes={"T": CROPPED})(crop_and_resize)
    for op in ("ImageProjectiveTransformV2", "ImageProjectiveTransformV3"):
        kernels.kernel(op)(image_projective_transform)
