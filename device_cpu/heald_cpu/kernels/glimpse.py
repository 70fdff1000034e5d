"""Windows of images around given points, with noise where a window is outside of its image.

The first version of the op takes offsets as the middles of windows throughout. The second one does so only for offsets
that are both centred and normalised; others are the upper left corners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..element_types import Array

Run = Callable[..., None]
F32 = np.float32
OUTSIDE = -(2**31)  # the corner for an offset that is no int32, as of C on x86


def extract_glimpse(b: Bind) -> Run:
    lengths, sizes = b.inputs[0].meta.dims[1:3], b.outputs[0].dims[1:3]
    noise = b.attrs["noise"] or ("uniform" if b.attrs["uniform_noise"] else "gaussian")
    random = np.random.default_rng()  # TensorFlow's noise has no seed
    fill: Callable[[Array, Array], Any] = {
        "zero": lambda image, out: 0, "uniform": lambda image, out: _uniform(random, image, out),
        "gaussian": lambda image, out: _gaussian(random, image, out),
    }[noise]
    corners_of = _corners(b)

    def run(x: Array, _: Array, offsets: Array, out: Array) -> None:
        corners = [corners_of(offsets[:, axis], lengths[axis], sizes[axis]) for axis in range(2)]
        for image, window, *corner in zip(x, out, *corners, strict=True):
            axes = [_common(start, length, size) for start, length, size in zip(corner, lengths, sizes, strict=True)]
            (rows, from_rows), (columns, from_columns) = axes
            if window[rows, columns].size < window.size:
                window[...] = fill(image, window) if image.size else 0
            window[rows, columns] = image[from_rows, from_columns]

    return run


def _corners(b: Bind) -> Callable[[Array, int, int], list[int]]:
    centred, normalised = b.attrs["centered"], b.attrs["normalized"]
    is_first = b.op == "ExtractGlimpse"

    def corners(offsets: Array, length: int, size: int) -> list[int]:
        middle = offsets * F32(length) if normalised else offsets
        if centred:
            middle = (middle / F32(2) if is_first or normalised else middle) + F32(length) / F32(2)
        if is_first or (centred and normalised):
            middle = middle - F32(size) / F32(2)
        fits = np.abs(middle) < -OUTSIDE
        return [int(start) for start in np.where(fits, middle, OUTSIDE)]

    return corners


def _common(start: int, length: int, size: int) -> tuple[slice, slice]:
    """The elements of a window, from `start` on, that are in the image, and the same elements of the image."""
    first, end = max(start, 0), max(min(start + size, length), 0)
    first = min(first, end)
    return slice(first - start, end - start) if end > first else slice(0, 0), slice(first, end)


def _uniform(random: np.random.Generator, image: Array, out: Array) -> Any:
    """Numbers between the least and the largest of each channel."""
    least, largest = image.min((0, 1)), image.max((0, 1))
    return least + (largest - least) * random.random(out.shape, F32)


def _gaussian(random: np.random.Generator, image: Array, out: Array) -> Any:
    """Numbers with the mean and the deviation of each channel, not beyond its least and largest."""
    drawn = image.mean((0, 1)) + image.std((0, 1)) * random.standard_normal(out.shape, F32)
    return np.clip(drawn, image.min((0, 1)), image.max((0, 1)))


def register_kernels(kernels: Kernels) -> None:
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        kernels.kernel(op)(extract_glimpse)
