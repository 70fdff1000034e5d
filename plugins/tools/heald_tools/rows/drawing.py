"""Boxes and masks on the pictures that a model looked at.

Boxes are those of detections. Their numbers are shares of the picture, or pixels of the model's input where one is
larger than 2. Masks are the masks of detections, within their boxes, or else a map of classes: whole numbers of pixels,
scores of more than four classes, or the chance of one class. Class 0 of a map is the background, and stays clear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heald.errors import InvalidArgument

from .detections import BOXES, CLASSES, MASKS, SCORES, THRESHOLD, class_name, find_roles, indices_of_row
from .output_pictures import LARGEST_PALETTE, is_map, palette

DRAWINGS = ("boxes", "masks")
LARGEST_SHARE = 2.0  # of a box's numbers: larger ones are pixels
_COVER = 0.5  # of a mask over the picture
_MOST_NAMES = 12  # of a legend


class Drawings:
    """Draws the outputs of a row on its picture. `pictures_of` is safe to call from several threads."""

    def __init__(self, kinds: Sequence[str], open_file: Callable[[str], tuple[Any, tuple[int, int]]],
                 names: Sequence[str] | None, threshold: float | None) -> None:
        """`open_file`: from a row's file to the picture to draw on, and the height and width of the model's picture."""
        self._kinds, self._open, self._names = kinds, open_file, names
        self._threshold = threshold

    def choose(self, outputs: Mapping[str, Any]) -> None:
        """Raises InvalidArgument for a model without the outputs that are to be drawn."""
        shapes = ", ".join(f"{name} {list(getattr(values, 'shape', ()))}" for name, values in outputs.items())
        if "boxes" in self._kinds and find_roles(outputs) is None:
            raise InvalidArgument(f"--draw boxes: the model has no {BOXES} [rows,objects,4] with {SCORES}: {shapes}")
        if "masks" in self._kinds and not _has_masks(outputs) and _map_output(outputs) is None:
            raise InvalidArgument(f"--draw masks: no output is a map of classes, and none is {MASKS}: {shapes}")

    @property
    def state(self) -> tuple[str, ...]:
        return ()

    def restore(self, state: Sequence[str]) -> None:
        """Drawings have no state."""

    def pictures_of(self, file: str, outputs: Mapping[str, Any], row: int) -> list[tuple[str, Any]]:
        """The picture of a row with its drawings."""
        picture, seen_size = self._open(file)
        roles = find_roles(outputs)
        arrays = {role: outputs[name][row] for role, name in roles.items()} if roles is not None else {}
        if "masks" in self._kinds:
            if _has_masks(outputs):
                picture = self._draw_object_masks(picture, arrays, seen_size)
            else:
                name = _map_output(outputs)
                picture = self._draw_map(picture, outputs[name][row]) if name is not None else picture
        if "boxes" in self._kinds:
            self._draw_boxes(picture, arrays, seen_size)
        return [("", picture)]

    def _draw_boxes(self, picture: Any, arrays: Mapping[str, Any], seen_size: tuple[int, int]) -> None:
        from PIL import ImageDraw, ImageFont

        draw = ImageDraw.Draw(picture)
        shorter = min(picture.size)
        width, font = max(1, shorter // 150), ImageFont.load_default(max(10, shorter // 25))
        for index in reversed(indices_of_row(arrays, self._threshold)):  # the best ones over the others
            number = int(arrays[CLASSES][index]) if CLASSES in arrays else None
            color = _color(number if number is not None else 1)
            box = box_in_pixels(arrays[BOXES][index], seen_size, picture.size)
            draw.rectangle(box, outline=color, width=width)
            text = f"{arrays[SCORES][index]:.2f}"
            if number is not None:
                text = f"{class_name(number, self._names) if self._names is not None else number} {text}"
            _draw_label(draw, box, text, color, font)

    def _draw_object_masks(self, picture: Any, arrays: Mapping[str, Any], seen_size: tuple[int, int]) -> Any:
        import numpy as np

        classes = np.zeros((picture.height, picture.width), np.int64)
        for index in reversed(indices_of_row(arrays, self._threshold)):
            mask = arrays[MASKS][index]
            is_whole = mask.shape == seen_size
            box = (0.0, 0.0, float(picture.width), float(picture.height)) if is_whole else box_in_pixels(
                arrays[BOXES][index], seen_size, picture.size)
            number = int(arrays[CLASSES][index]) if CLASSES in arrays else 1
            _fill_mask(classes, mask, box, max(1, number))
        return _cover(picture, classes)

    def _draw_map(self, picture: Any, value: Any) -> Any:
        import numpy as np
        from PIL import Image, ImageDraw, ImageFont

        classes = classes_of_map(value, THRESHOLD if self._threshold is None else self._threshold)
        image = Image.fromarray(classes.astype(np.int32)).resize(picture.size, Image.Resampling.NEAREST)
        covered = _cover(picture, np.asarray(image))
        if self._names is not None:
            present = [int(number) for number in np.unique(classes) if number][:_MOST_NAMES]
            draw, font = ImageDraw.Draw(covered), ImageFont.load_default(max(10, min(picture.size) // 25))
            top = 2.0
            for number in present:
                top = _draw_name(draw, (2.0, top), _name_of_class(number, self._names), _color(number), font)
        return covered


def box_in_pixels(box: Any, seen_size: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Left, top, right and bottom in a picture of `size`, width and height, and within it."""
    import numpy as np

    top, left, bottom, right = (float(value) for value in np.nan_to_num(np.asarray(box, np.float64)))
    if max(map(abs, (top, left, bottom, right))) > LARGEST_SHARE:
        top, bottom = top / seen_size[0], bottom / seen_size[0]
        left, right = left / seen_size[1], right / seen_size[1]
    width, height = size
    xs = sorted(min(max(share, 0.0), 1.0) * (width - 1) for share in (left, right))
    ys = sorted(min(max(share, 0.0), 1.0) * (height - 1) for share in (top, bottom))
    return xs[0], ys[0], xs[1], ys[1]


def classes_of_map(value: Any, threshold: float) -> Any:
    """The class of each pixel: whole numbers, the best of scores, or 1 where a single score reaches the threshold."""
    if value.dtype.kind == "b" or is_map(value):
        return value.reshape(value.shape[:2])
    if value.ndim == 3 and value.shape[2] > 1:
        return value.argmax(axis=2)
    return value.reshape(value.shape[:2]).astype("float32") >= threshold


def _has_masks(outputs: Mapping[str, Any]) -> bool:
    roles = find_roles(outputs)
    return roles is not None and MASKS in roles and outputs[roles[MASKS]].ndim == 4


def _map_output(outputs: Mapping[str, Any]) -> str | None:
    """The output that is a map of classes: whole numbers before scores, scores before one chance."""
    values = {name: rows[0] for name, rows in outputs.items() if not name.rpartition("/")[2].startswith("detection_")}
    maps = [name for name, value in values.items() if value.ndim in (2, 3) and (
        value.dtype.kind == "b" or is_map(value))]
    scores = [name for name, value in values.items() if value.ndim == 3 and (
        value.dtype.kind in "fV" and value.shape[2] != 3)]
    scores.sort(key=lambda name: values[name].shape[2] == 1)
    return next(iter([*maps, *scores]), None)


def _fill_mask(classes: Any, mask: Any, box: tuple[float, float, float, float], number: int) -> None:
    """Set the class of the pixels that a mask of shares covers, stretched over a box."""
    import numpy as np
    from PIL import Image

    left, top, right, bottom = (round(value) for value in box)
    size = max(1, right - left), max(1, bottom - top)
    stretched = Image.fromarray(mask.astype(np.float32)).resize(size, Image.Resampling.BILINEAR)
    part = classes[top:top + size[1], left:left + size[0]]
    part[np.asarray(stretched)[:part.shape[0], :part.shape[1]] >= THRESHOLD] = number


def _cover(picture: Any, classes: Any) -> Any:
    """The picture with the colours of classes over it; class 0 stays clear."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(picture).astype(np.float32)
    colors = palette()[classes % LARGEST_PALETTE].astype(np.float32)
    mixed = np.where((classes != 0)[:, :, None], pixels * (1 - _COVER) + colors * _COVER, pixels)
    return Image.fromarray(mixed.round().astype(np.uint8))


def _color(number: int) -> tuple[int, int, int]:
    red, green, blue = palette()[1 + (number - 1) % (LARGEST_PALETTE - 1)].tolist()
    return red, green, blue


def _name_of_class(number: int, names: Sequence[str]) -> str:
    """The name of a map's class. Maps count from 0, and a single label is of class 1."""
    if len(names) == 1:
        return names[0]
    return names[number] if number < len(names) else str(number)


def _draw_label(draw: Any, box: tuple[float, float, float, float], text: str, color: tuple[int, int, int], font: Any,
                ) -> None:
    """A name above a box, or within it at the picture's upper edge."""
    height = _line_height(font)
    _draw_name(draw, (box[0], box[1] - height if box[1] >= height else box[1]), text, color, font)


def _line_height(font: Any) -> float:
    return float(font.getbbox("Ag")[3]) + 4


def _draw_name(draw: Any, corner: tuple[float, float], text: str, color: tuple[int, int, int], font: Any) -> float:
    """A name on its colour, and the lower edge of it."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    width, height = font.getlength(shown) + 4, _line_height(font)
    draw.rectangle((*corner, corner[0] + width, corner[1] + height), fill=color)
    is_bright = 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2] > 140
    draw.text((corner[0] + 2, corner[1] + 1), shown, (0, 0, 0) if is_bright else (255, 255, 255), font)
    return corner[1] + height
