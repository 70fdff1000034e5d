"""Pictures that a page sends for inputs of a model.

A picture is decoded once, when it is sent, by the reader of `heald run` and with its limits: PNG, JPEG, WebP, BMP or
GIF, and at most `MOST_PIXELS`, which the header states before any pixel is decoded. It gets the size, colours and
layout of the input. An input of strings takes the file's bytes.

Each input has the picture that was sent last. A text of the form `picture 3` stands for it. The number is another one
for each picture, so a page that still shows an earlier picture gets an error, and no result of another picture.
"""

from __future__ import annotations

import base64
import binascii
import io
from typing import TYPE_CHECKING, Any, NamedTuple

from heald.errors import HealdError, InvalidArgument, NotFound, ResourceExhausted

if TYPE_CHECKING:
    from heald import Model
    from heald.api import TensorMetadata
    from heald_tools.rows.preprocessing import Numbers

PICTURE = "picture "  # the begin of a text that stands for a picture
LARGEST_PICTURE_BYTES = 32 << 20  # of a file
_PRESET_OF_RANGE = {"0 to 255": None, "0 to 1": None, "-1 to 1": "tf", "ImageNet, as PyTorch": "torch",
                    "ImageNet, BGR less the mean": "caffe"}
RANGES = (*_PRESET_OF_RANGE,)  # the ranges of pixels that a page offers


class SentPicture(NamedTuple):
    """`text`: stands for the picture in questions. `value`: as the input takes it. `note`: about its range."""

    text: str
    value: Any
    note: str


class PictureInputs:
    """The last picture of each input."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._pictures: dict[str, SentPicture] = {}
        self._sent = 0

    def takes(self, name: str) -> bool:
        """Return True for an input that a picture may feed."""
        from heald.api import dtypes
        from heald_tools.rows.preprocessing import layout_of

        meta = self._model.inputs[name]
        try:
            return meta.dtype is dtypes.string or bool(layout_of(meta, name))
        except InvalidArgument:
            return False

    def take(self, name: str, content: str, pixel_range: str) -> SentPicture:
        """Decode and keep a file, sent in base64. Raises as `heald run` does for a picture that it cannot take."""
        if pixel_range not in RANGES:
            raise InvalidArgument(f"'range' of a picture is one of {', '.join(RANGES)}")
        try:
            value = self._value(name, _bytes_of(content), pixel_range)
        except HealdError as error:
            raise type(error)(f"picture for input '{name}': {error.message}", hint=error.hint) from error
        self._sent += 1
        picture = SentPicture(f"{PICTURE}{self._sent}", value, self._note(name, pixel_range))
        self._pictures[name] = picture
        return picture

    def value(self, text: str, name: str) -> Any:
        """Return the value that a text stands for."""
        picture = self._pictures.get(name)
        if picture is None or picture.text != text:
            raise NotFound(f"'{text[:60]}' is not the last picture of input '{name}'", hint="choose the file again")
        return picture.value

    def _value(self, name: str, content: bytes, pixel_range: str) -> Any:
        import numpy as np
        from heald.api import dtypes
        from heald_tools.images import check_pillow, decode_picture
        from heald_tools.rows.pictures import array_of_picture
        from heald_tools.rows.preprocessing import Preprocessing, layout_of

        meta = self._model.inputs[name]
        if meta.dtype is dtypes.string:
            return np.full((1,) * (meta.rank or 0), content, object)
        layout = layout_of(meta, name)
        check_pillow("reading pictures")
        preprocessing = Preprocessing(numbers=_numbers(pixel_range, meta, layout.channels))
        array = array_of_picture(decode_picture(io.BytesIO(content), layout.channels), meta, layout, preprocessing)
        return array if meta.rank == array.ndim else array[None]

    def _note(self, name: str, pixel_range: str) -> str:
        """Return a warning about a range that the graph does not expect, as `heald run` has it."""
        from heald_tools.rows.rescaling import FLOATS, find_first_ops

        if self._model.inputs[name].dtype not in FLOATS:
            return ""
        first_ops = find_first_ops(self._model.graph, self._model.fed[name])
        if first_ops.rescaling is not None and pixel_range != RANGES[0]:
            return f"the graph itself rescales pixels from 0 to 255, by node '{first_ops.rescaling}'"
        if first_ops.rescaling is None and pixel_range == RANGES[0] and first_ops.first is not None:
            return f"pixels are from 0 to 255, and the graph begins with {first_ops.first}, which does not rescale them"
        return ""


def _numbers(pixel_range: str, meta: TensorMetadata, channels: int) -> Numbers | None:
    """Return the way from 0 to 255 to a range. Raises InvalidArgument for an input that cannot have it."""
    from heald_tools.rows.preprocessing import PRESETS, Numbers

    if pixel_range == RANGES[0]:
        return None
    preset = _PRESET_OF_RANGE[pixel_range]
    numbers = Numbers(1 / 255) if preset is None else PRESETS[preset]
    if "float" not in meta.dtype.name:
        raise InvalidArgument(f"the range '{pixel_range}' has fractions, and the input is {meta}",
                              hint=f"the range '{RANGES[0]}'")
    if numbers.mean and channels != len(numbers.mean):
        raise InvalidArgument(f"the range '{pixel_range}' is of {len(numbers.mean)} channels, and the input has "
                              f"{channels}")
    return numbers


def _bytes_of(content: str) -> bytes:
    if len(content) > LARGEST_PICTURE_BYTES * 4 // 3 + 4:
        raise ResourceExhausted(f"the file has more than {LARGEST_PICTURE_BYTES >> 20} MiB", hint="resize it first")
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArgument("'content' of a picture is no base64") from None
