"""Outputs as pictures, by one rule. The shape and the type of a row's value say which picture it is:

    [height, width, 1], [.., 3], [.., 4]   gray, colours, colours with transparency
    [1, height, width], [3, ..], [4, ..]   the same, channels first
    [height, width] of whole numbers       a map of classes, and [height, width, 1] of whole numbers but bytes
    [height, width] of others              gray, where it is the only output

Bytes are pixels, and truth values black and white. The classes of a map are the indices of a palette, that of Pascal
VOC. Numbers with a fraction are scaled from their range to 0 to 255, and cut off beyond. The first batch says the
range: 0 to 1, -1 to 1, or else 0 to 255; `--output-range` says it otherwise.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from heald.errors import HealdWarning, InvalidArgument, printable

from .preprocessing import CHANNELS

Range = tuple[float, float]
KNOWN_RANGES: tuple[Range, ...] = ((0.0, 1.0), (-1.0, 1.0))
BYTES: Range = (0.0, 255.0)
_TOLERANCE = 0.01  # of a range: networks overshoot
LARGEST_PALETTE = 256


class OutputPictures:
    """The pictures among a model's outputs, each with its range."""

    def __init__(self, output_range: Range | None) -> None:
        self._range = output_range
        self._ranges: dict[str, Range] = {}

    def choose(self, outputs: Mapping[str, Any]) -> None:
        """Choose outputs and ranges by the first batch, and tell both on stderr. Raises InvalidArgument without any."""
        samples = {name: values[0] for name, values in outputs.items()}
        names = [name for name, sample in samples.items() if is_picture(sample, is_only=len(samples) == 1)]
        if not names:
            shapes = ", ".join(f"{name} {list(sample.shape)}" for name, sample in samples.items())
            raise InvalidArgument(f"no output is a picture of each row: {shapes}",
                                  hint="pictures are [height, width, 1, 3 or 4], or whole numbers [height, width]")
        self._ranges = {name: self._range or _range_of(outputs[name]) for name in names}
        others = [name for name in samples if name not in names]
        if others:
            warnings.warn(f"outputs that are no pictures are left out: {', '.join(others)}", HealdWarning, stacklevel=2)
        for name in names:
            if samples[name].dtype.kind in "fV" and self._range is None:
                low, high = self._ranges[name]
                sys.stderr.write(printable(f"hint: output '{name}' is scaled from {low:g}..{high:g} to pixels; "
                                           "--output-range LOW,HIGH says it otherwise") + "\n")

    @property
    def state(self) -> tuple[str, ...]:
        """The choice as texts, for the journal."""
        return tuple(f"{low!r} {high!r} {name}" for name, (low, high) in self._ranges.items())

    def restore(self, state: Sequence[str]) -> None:
        for text in state:
            low, high, name = text.split(" ", 2)
            self._ranges[name] = float(low), float(high)

    def pictures_of(self, _: str, outputs: Mapping[str, Any], row: int) -> list[tuple[str, Any]]:
        """The pictures of a row, by the output's name; an empty name for the only one."""
        return [(name if len(self._ranges) > 1 else "", to_picture(outputs[name][row], bounds))
                for name, bounds in self._ranges.items()]


def is_picture(value: Any, *, is_only: bool) -> bool:
    if value.dtype.kind not in "biufV" or not value.size:
        return False
    if value.ndim == 2:
        return bool(is_only or value.dtype.kind in "biu") and min(value.shape) > 1
    return bool(value.ndim == 3 and (value.shape[2] in CHANNELS or value.shape[0] in CHANNELS))


def to_picture(value: Any, bounds: Range) -> Any:
    """The picture of a row's value."""
    import numpy as np
    from PIL import Image

    if value.ndim == 3 and value.shape[2] not in CHANNELS:
        value = value.transpose(1, 2, 0)
    if is_map(value):
        return map_picture(value.reshape(value.shape[:2]))
    if value.ndim == 3 and value.shape[2] == 1:
        value = value[:, :, 0]
    return Image.fromarray(np.ascontiguousarray(_bytes_of(value, bounds)))


def is_map(value: Any) -> bool:
    """True for the classes of pixels."""
    return bool(value.dtype.kind in "iu" and (
        value.ndim == 2 or (value.shape[2] == 1 and value.dtype.itemsize > 1)))


def map_picture(classes: Any) -> Any:
    """Classes of pixels in the colours of the palette. The indices stay in the file where they fit."""
    import numpy as np
    from PIL import Image

    if classes.min() >= 0 and classes.max() < LARGEST_PALETTE:
        picture = Image.fromarray(classes.astype(np.uint8))
        picture.putpalette(palette().tobytes())
        return picture
    return Image.fromarray(palette()[classes % LARGEST_PALETTE])


def palette() -> Any:
    """The colours of Pascal VOC: the bits of an index, by threes, are the high bits of red, green and blue."""
    import numpy as np

    index = np.arange(LARGEST_PALETTE)
    colors = np.zeros((LARGEST_PALETTE, 3), np.uint8)
    for bit in range(8):
        for channel in range(3):
            colors[:, channel] |= (((index >> (3 * bit + channel)) & 1) << (7 - bit)).astype(np.uint8)
    return colors


def _bytes_of(value: Any, bounds: Range) -> Any:
    import numpy as np

    if value.dtype.kind == "b":
        return value * np.uint8(255)
    if value.dtype.kind in "iu":
        return value.clip(0, 255).astype(np.uint8)
    low, high = bounds
    scaled = (value.astype(np.float32) - np.float32(low)) * np.float32(255 / (high - low))
    return np.nan_to_num(scaled).round().clip(0, 255).astype(np.uint8)


def _range_of(values: Any) -> Range:
    """The range that fits all finite numbers of a batch."""
    import numpy as np

    flat = np.concatenate([np.asarray(value).astype(np.float32).reshape(-1) for value in values])
    finite = flat[np.isfinite(flat)]
    if not finite.size:
        return KNOWN_RANGES[0]
    low, high = float(finite.min()), float(finite.max())
    return next((bounds for bounds in KNOWN_RANGES if bounds[0] - _TOLERANCE <= low and high <= bounds[1] + _TOLERANCE),
                BYTES)
