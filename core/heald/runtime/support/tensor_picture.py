"""Pictures of tensors: PNG files, without a library for images.

A tensor is a picture when its elements are numbers and its height and width are at least LEAST_SIDE. These are the two
dimensions before a last one of 1, 3 or 4 channels. A tensor of rank 4 with another last dimension has a tile for each
of its first features. In any other tensor height and width come last. Of a batch the picture is the first. Bytes are
shown as they are; other numbers from the smallest, black, to the largest, white.
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

import numpy as np

MOST_TILES = 16
LEAST_SIDE, LARGEST_SIDE = 4, 512  # pixels; larger pictures leave out rows and columns
CHANNELS = {1: 0, 3: 2, 4: 6}  # PNG's colour types
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def tensor_png(array: Any) -> bytes | None:
    """Return the picture of an array as a PNG file, None for an array that is no picture."""
    pixels = _pixels(array)
    return None if pixels is None else png_bytes(_as_bytes(pixels))


def png_bytes(pixels: Any) -> bytes:
    """Return a PNG file of bytes in the shape [height, width, channels]."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter, 0 for none
    rows[:, 1:] = pixels.reshape(height, width * channels)
    header = struct.pack(">IIBBBBB", width, height, 8, CHANNELS[channels], 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.tobytes())) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _pixels(array: Any) -> Any:
    """Return elements in the shape [height, width, channels], None for an array that is no picture."""
    if array.dtype.kind not in "biuf" or array.ndim < 2 or not array.size:
        return None
    if array.ndim == 4 and array.shape[-1] not in CHANNELS:
        array = _tiles(array[0, :, :, :MOST_TILES])
    elif array.ndim == 2 or array.shape[-1] not in CHANNELS:
        array = array[..., None]
    array = array[(0,) * (array.ndim - 3)]
    height, width, _ = array.shape
    if min(height, width) < LEAST_SIDE:
        return None
    return array[::-(-height // LARGEST_SIDE), ::-(-width // LARGEST_SIDE)]


def _tiles(features: Any) -> Any:
    """Return the features side by side, in rows of about as many as there are rows."""
    height, width, count = features.shape
    columns = math.isqrt(count - 1) + 1
    rows = -(-count // columns)
    sheet = np.zeros((rows * height, columns * width, 1), features.dtype)
    for index in range(count):
        top, left = index // columns * height, index % columns * width
        sheet[top:top + height, left:left + width, 0] = features[:, :, index]
    return sheet


def _as_bytes(pixels: Any) -> Any:
    if pixels.dtype == np.uint8:
        return pixels
    wide = pixels.astype(np.float64)
    finite = np.isfinite(wide)
    low, high = (float(wide[finite].min()), float(wide[finite].max())) if finite.any() else (0.0, 0.0)
    with np.errstate(all="ignore"):
        scaled = (wide / 2 - low / 2) / (high / 2 - low / 2 or 1.0) * 255  # halves: the difference may overflow
    return np.nan_to_num(np.clip(scaled, 0, 255), nan=0.0).astype(np.uint8)
