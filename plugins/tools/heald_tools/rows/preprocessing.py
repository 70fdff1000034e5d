"""From a picture's pixels to the array that a model takes: size, colours, range and layout.

The steps are those of training pipelines, in their order: resize, crop, colours, rescale, mean and deviation, layout. A
preset stands for the last numbers: those of Keras's `preprocess_input` (keras/src/applications/imagenet_utils.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from heald.api import TensorMetadata
from heald.errors import InvalidArgument

from .options import SoundOptions

CHANNELS = (1, 3, 4)
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos", "area")


class Numbers(NamedTuple):
    """The way from 0 to 255 to a model's range: x * scale + offset, less the mean, by the deviation of each channel."""

    scale: float = 1.0
    offset: float = 0.0
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    bgr: bool = False


PRESETS = {
    "tf": Numbers(scale=1 / 127.5, offset=-1.0),
    "torch": Numbers(scale=1 / 255, mean=(0.485, 0.456, 0.406), deviation=(0.229, 0.224, 0.225)),
    "caffe": Numbers(mean=(103.939, 116.779, 123.68), bgr=True),
}


class Preprocessing(NamedTuple):
    """`resize`: (height, width), or (shorter side,) in the picture's proportions; None for the input's size.

    `crop`: (height, width) of the middle. `antialias`: Pixels that shrink are averaged. `numbers`: None where the user
    said nothing of them.
    """

    resize: tuple[int, ...] | None = None
    crop: tuple[int, int] | None = None
    interpolation: str = "bilinear"
    antialias: bool = True
    numbers: Numbers | None = None
    sound: SoundOptions = SoundOptions()


class Layout(NamedTuple):
    """An input's idea of a picture. None for a size that may be any."""

    height: int | None
    width: int | None
    channels: int
    channels_first: bool
    has_channels: bool


def layout_of(meta: TensorMetadata, name: str) -> Layout:
    """The layout of one picture in an input. Raises InvalidArgument for an input that is no picture."""
    shape = meta.shape
    if shape is None:
        return Layout(None, None, 3, channels_first=False, has_channels=True)
    if len(shape) == 4:
        shape = shape[1:]
    if len(shape) == 3 and (shape[2] in CHANNELS or shape[2] is None):
        return Layout(shape[0], shape[1], shape[2] or 3, channels_first=False, has_channels=True)
    if len(shape) == 3 and shape[0] in CHANNELS:
        return Layout(shape[1], shape[2], shape[0] or 3, channels_first=True, has_channels=True)
    if len(shape) == 3:  # [batch, height, width]
        return Layout(shape[1], shape[2], 1, channels_first=False, has_channels=False)
    raise InvalidArgument(f"input '{name}' is {meta}, which is no picture",
                          hint="pictures feed inputs such as [?,224,224,3], or texts with the files' bytes")


def size_of_resize(height: int, width: int, wanted: Sequence[int] | None, layout: Layout, crop: tuple[int, int] | None,
                   ) -> tuple[int, int]:
    """The height and width that a picture gets before it is cropped."""
    if wanted is None:
        if crop is not None or layout.height is None or layout.width is None:
            return height, width
        return layout.height, layout.width
    if len(wanted) == 2:
        return wanted[0], wanted[1]
    shorter = wanted[0]
    if height <= width:
        return shorter, max(shorter, round(width * shorter / height))
    return max(shorter, round(height * shorter / width)), shorter


def undo_numbers(values: Any, numbers: Numbers | None) -> Any:
    """The pixels of uint8 behind values that `apply_numbers` made."""
    import numpy as np

    pixels = np.asarray(values).astype(np.float32)
    if numbers is not None:
        if numbers.deviation:
            pixels = pixels * np.array(numbers.deviation, np.float32)
        if numbers.mean:
            pixels = pixels + np.array(numbers.mean, np.float32)
        pixels = (pixels - np.float32(numbers.offset)) / np.float32(numbers.scale or 1)
        if numbers.bgr and pixels.shape[2] == 3:
            pixels = pixels[:, :, ::-1]
    return np.nan_to_num(pixels).round().clip(0, 255).astype(np.uint8)


def apply_numbers(pixels: Any, numbers: Numbers | None, meta: TensorMetadata) -> Any:
    """Pixels of uint8 [height, width, channels] in the model's range and type."""
    import numpy as np

    kind = meta.dtype.numpy
    if numbers is None or numbers == Numbers():
        return pixels.astype(kind)
    values = pixels[:, :, 2::-1] if numbers.bgr and pixels.shape[2] == 3 else pixels
    values = values.astype(np.float32) * np.float32(numbers.scale)
    if numbers.offset:
        values += np.float32(numbers.offset)
    if numbers.mean:
        values -= np.array(numbers.mean, np.float32)
    if numbers.deviation:
        values /= np.array(numbers.deviation, np.float32)
    return values.astype(kind)
