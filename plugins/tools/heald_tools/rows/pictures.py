"""Pictures as rows, in the size, range and layout that a model takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heald.api import TensorMetadata, dtypes
from heald.errors import InvalidArgument

from ..images import check_pillow, open_picture, read_bytes
from .preprocessing import Layout, Preprocessing, apply_numbers, layout_of, size_of_resize
from .row_batch import Undecoded


def column_of_pictures(files: Sequence[Path], meta: TensorMetadata, name: str, preprocessing: Preprocessing,
                       ) -> Undecoded:
    """Return the rows of these files, undecoded. An input of texts takes the files' bytes.

    Raises Unimplemented without Pillow, InvalidArgument for an input that is no picture. Decoding raises as
    `open_picture`.
    """
    if meta.dtype is dtypes.string:
        return Undecoded(files, read_bytes, 0)
    layout = layout_of(meta, name)
    check_pillow("reading pictures")
    rank = 3 if layout.has_channels else 2
    return Undecoded(files, lambda path: array_of_picture(open_picture(path, layout.channels), meta, layout,
                                                          preprocessing), rank)


def open_to_draw(path: Path, meta: TensorMetadata, name: str, preprocessing: Preprocessing,
                 ) -> tuple[Any, tuple[int, int]]:
    """The picture to draw answers on, and the height and width of the model's picture.

    It is the file's own, or with a crop the part that the model looked at.
    """
    layout = layout_of(meta, name)
    picture = open_picture(path, 3)
    if preprocessing.crop is None:
        return picture, size_of_resize(picture.height, picture.width, preprocessing.resize, layout, None)
    part = _crop(_resize(picture, layout, preprocessing), preprocessing.crop)
    return part, (part.height, part.width)


def array_of_picture(picture: Any, meta: TensorMetadata, layout: Layout, preprocessing: Preprocessing) -> Any:
    """The array of one row, without a batch. Raises InvalidArgument for a size that the input does not take."""
    import numpy as np

    pixels = np.asarray(_crop(_resize(picture, layout, preprocessing), preprocessing.crop))
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    _check_size(pixels.shape, layout)
    array = apply_numbers(pixels, preprocessing.numbers, meta)
    if not layout.has_channels:
        return array[:, :, 0]
    return np.ascontiguousarray(array.transpose(2, 0, 1)) if layout.channels_first else array


def _resize(picture: Any, layout: Layout, preprocessing: Preprocessing) -> Any:
    from PIL import Image

    height, width = size_of_resize(picture.height, picture.width, preprocessing.resize, layout, preprocessing.crop)
    if (picture.width, picture.height) == (width, height):
        return picture
    name = {"area": "BOX"}.get(preprocessing.interpolation, preprocessing.interpolation.upper())
    resample = Image.Resampling[name]
    if preprocessing.antialias or name in ("NEAREST", "BOX", "LANCZOS"):
        return picture.resize((width, height), resample)
    scale = picture.width / width, 0.0, 0.0, 0.0, picture.height / height, 0.0
    return picture.transform((width, height), Image.Transform.AFFINE, scale, resample)


def _crop(picture: Any, crop: tuple[int, int] | None) -> Any:
    if crop is None:
        return picture
    height, width = crop
    if height > picture.height or width > picture.width:
        raise InvalidArgument(f"{picture.width}x{picture.height} pixels are fewer than the crop of {width}x{height}",
                              hint="--resize makes the shorter side longer")
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    return picture.crop((left, top, left + width, top + height))


def _check_size(shape: tuple[int, ...], layout: Layout) -> None:
    height, width = layout.height, layout.width
    if height not in (None, shape[0]) or width not in (None, shape[1]):
        raise InvalidArgument(f"{shape[1]}x{shape[0]} pixels, where the input takes {width or '?'}x{height or '?'}",
                              hint="--resize HEIGHTxWIDTH")
