"""Kernels that choose a random part of an image, the same part as TensorFlow for the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from ..philox import below, words
from .random import sequence, uniform

Run = Callable[..., None]
f32 = np.float32
LARGEST_SIDE_PIXELS = 2**31 - 1  # along a side of an image


class Box(NamedTuple):
    """Pixels from `top` and `left` on, up to `bottom` and `right`."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def area(self) -> int:
        return (self.bottom - self.top) * (self.right - self.left)

    def shared_pixels(self, other: Box) -> int:
        """The number of pixels in both boxes."""
        rows = min(self.bottom, other.bottom) - max(self.top, other.top)
        columns = min(self.right, other.right) - max(self.left, other.left)
        return rows * columns if min(rows, columns) > 0 else 0


def sample_distorted_bounding_box(b: Bind) -> Run:
    attrs, numbers, fraction = b.attrs, sequence(b), uniform(np.dtype(f32))
    ratios, areas = ([f32(end) for end in attrs[name]] for name in ("aspect_ratio_range", "area_range"))

    def run(size: Array, boxes: Array, *covered_and_outputs: Array) -> None:
        *covered, begin, extent, bboxes = covered_and_outputs
        least = f32(covered[0] if covered else attrs["min_object_covered"])
        height, width = _sides(size)
        objects = _objects(boxes, height, width, least, whole_image=attrs["use_image_if_no_bounding_boxes"])
        drawn = words(*numbers.reserve(attrs["max_attempts"]))
        crop = Box(0, 0, height, width)
        for _ in range(attrs["max_attempts"]):
            ratio = fraction(np.array([next(drawn)], np.uint32))[0] * (ratios[1] - ratios[0]) + ratios[0]
            candidate = _crop(height, width, areas, ratio, drawn)
            if candidate is not None and _covers(candidate, objects, least):
                crop = candidate
                break
        begin[:] = crop.top, crop.left, 0
        extent[:] = np.array([crop.bottom - crop.top, crop.right - crop.left, -1]).astype(extent.dtype)
        bboxes[0, 0] = np.array(crop, f32) / np.array([height, width, height, width], f32)

    return run


def _sides(size: Array) -> tuple[int, int]:
    for side, name in zip(size.tolist(), ("height", "width"), strict=False):
        if not 0 <= side < LARGEST_SIDE_PIXELS:
            raise errors.InvalidArgument(f"image {name} cannot be >= int32 max")
    return int(size[0]), int(size[1])


def _objects(boxes: Array, height: int, width: int, least: f32, *, whole_image: bool) -> list[Box]:
    """The given boxes in pixels, or the whole image if there are no boxes and `whole_image` is set. Raises
    InvalidArgument."""
    if not least >= 0:
        raise errors.InvalidArgument(f"Min object covered must be non-negative: {least:g}")
    outside = boxes[~((boxes >= 0) & (boxes <= 1))]
    if outside.size:
        raise errors.InvalidArgument(f"All bounding box coordinates must be in [0.0, 1.0]: {outside[0]:g}")
    if not (boxes.size or whole_image):
        raise errors.InvalidArgument("No bounding boxes provided as input. One must enable "
                                     "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes.")
    if not boxes.size:
        return [Box(0, 0, height, width)]
    pixels = (boxes.reshape(-1, 4) * np.array([height, width, height, width], f32)).astype(np.int32)
    return [Box(*row) for row in pixels.tolist()]


def _crop(height: int, width: int, areas: list[f32], ratio: f32, drawn: Iterator[int]) -> Box | None:
    """A part of the image with this ratio of width to height. Its height is random between the heights of the least and
    the largest area; its position is random, too. None if rounding leaves no such part."""
    if areas[0] > areas[1] or ratio <= 0 or not (height and width):
        return None
    least, greatest = (area * f32(width) * f32(height) for area in areas)
    rows, highest = (_round(np.sqrt(area / ratio)) for area in (least, greatest))
    if _round(f32(highest) * ratio) > width:
        highest = int((width + 0.5 - float(f32(1e-7))) / float(ratio))
        highest -= _round(f32(highest) * ratio) > width
    highest = min(highest, height)
    rows = min(rows, highest)
    if rows < highest:
        rows += below(highest - rows + 1, drawn, 32)
    columns = _round(f32(rows) * ratio)
    for step in (1, -1):  # rounding may have led beyond the areas
        area = f32(rows * columns)
        if area < least if step > 0 else area > greatest:
            rows += step
            columns = _round(f32(rows) * ratio)
    if not (least <= f32(rows * columns) <= greatest and 0 < columns <= width and 0 < rows <= height):
        return None
    top = below(height - rows, drawn, 32) if rows < height else 0
    left = below(width - columns, drawn, 32) if columns < width else 0
    return Box(top, left, top + rows, left + columns)


def _round(x: f32) -> int:
    return int(np.rint(x))


def _covers(crop: Box, objects: list[Box], least: f32) -> bool:
    """True if at least the share `least` of an object is in the crop. An object without pixels does not count."""
    return crop.area >= 1 and any(
        f32(crop.shared_pixels(box)) / f32(box.area) >= least for box in objects if box.area >= 1)


def register_kernels(kernels: Kernels) -> None:
    for op in ("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"):
        kernels.kernel(op)(sample_distorted_bounding_box)
