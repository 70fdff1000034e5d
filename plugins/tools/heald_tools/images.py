"""Pictures of files, opened by Pillow, an optional dependency: the one reader for single inputs and for rows.

A picture is turned as its EXIF says. Of an animation it is the first picture. Transparency is dropped where the
channels lack it, as by TensorFlow's decoders; 16 bits a channel become their upper 8, as there.
"""

from __future__ import annotations

import stat
import warnings
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from heald.api import TensorMetadata, install_hint
from heald.errors import (
    DataLoss,
    HealdError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unimplemented,
    describe_exception,
    of_system,
)

PICTURE_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")  # by default Pillow tries all its formats, and runs programs
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif")
MOST_PIXELS = 89_478_485  # of a picture: Pillow's own bound, from which on it warns
MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's modes by the tensor's number of channels
_ONLY_HEADERS = Lock()  # filters of warnings belong to the process; pictures are opened by several threads


def check_pillow(purpose: str) -> None:
    """Raises Unimplemented without Pillow."""
    try:
        from PIL import Image  # noqa: F401
    except ImportError:
        raise Unimplemented(f"{purpose} needs Pillow", hint=install_hint("pillow")) from None


def read_image(path: Path, meta: TensorMetadata) -> Any:
    """Read an image's pixels as uint8. The tensor's last dimension gives the number of channels.

    A tensor of one more dimension gets a batch dimension: [1, height, width, channels]. A tensor of rank 2, or with a
    last dimension that cannot be channels, gets gray pixels without that dimension.
    Raises Unimplemented without Pillow, and as `open_picture` with the file's name.
    """
    import numpy as np

    check_pillow(f"reading '{path}'")
    last = meta.shape[-1] if meta.shape else None
    flat = meta.rank == 2 or last not in (None, *MODES)  # the tensor has no dimension for channels
    try:
        pixels = np.asarray(open_picture(path, 1 if flat else last))
    except HealdError as error:
        raise type(error)(f"'{path}': {error.message}", hint=error.hint) from error
    if pixels.ndim == 2 and not flat:
        pixels = pixels[:, :, None]
    return pixels[None] if meta.rank == pixels.ndim + 1 else pixels


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises as `check_file`."""
    check_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise of_system(error) from error


def check_file(path: Path) -> None:
    """Raises InvalidArgument for a path of no regular file, which may block a reader; NotFound for a broken link."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        reason = "a link to a file that is not there" if path.is_symlink() else "there is no such file"
        raise NotFound(reason) from None
    except OSError as error:
        raise of_system(error) from error
    if not stat.S_ISREG(mode):
        raise InvalidArgument("a folder, not a file" if stat.S_ISDIR(mode) else "no regular file")


def open_picture(path: Path, channels: int | None) -> Any:
    """The decoded picture of a file. Raises as `decode_picture`, and as `check_file`."""
    check_file(path)
    try:
        with path.open("rb") as file:
            return decode_picture(file, channels)
    except HealdError:
        raise
    except OSError as error:
        raise of_system(error) from error


def decode_picture(file: BinaryIO, channels: int | None) -> Any:
    """The decoded picture. `channels`: None for one of gray pictures, three of others.

    Raises DataLoss for content that is no picture, ResourceExhausted for one of too many pixels.
    The texts do not name the file: the caller does.
    """
    from PIL import Image, ImageOps

    try:
        with _open_header(file) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ResourceExhausted(f"{image.width}x{image.height} pixels, more than {MOST_PIXELS:,}",
                                        hint="resize it first, or feed an .npy file")
            return _with_channels(ImageOps.exif_transpose(image), channels)
    except HealdError:
        raise
    except (MemoryError, Image.DecompressionBombError) as error:
        raise ResourceExhausted(f"too many pixels: {describe_exception(error)}",
                                hint="resize it first, or feed an .npy file") from error
    except OSError as error:
        if error.errno is None:  # Pillow's own
            raise DataLoss(f"no picture that Pillow can read: {_reason(error)}") from error
        raise of_system(error) from error
    except Exception as error:  # Pillow's decoders raise any class for damaged data
        raise DataLoss(f"no picture that Pillow can read: {_reason(error)}") from error


def _open_header(file: BinaryIO) -> Any:
    from PIL import Image

    with _ONLY_HEADERS, warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
        return Image.open(file, formats=PICTURE_FORMATS)


def _reason(error: Exception) -> str:
    """Pillow's text, without the object that it was read from."""
    from PIL import UnidentifiedImageError

    return "no PNG, JPEG, WebP, BMP or GIF" if isinstance(error, UnidentifiedImageError) else describe_exception(error)


def _with_channels(image: Any, channels: int | None) -> Any:
    if image.mode.startswith("I"):  # 16 bits
        image = _upper_bytes(image)
    if channels is None:
        channels = 1 if image.mode in ("1", "L", "LA") else 3
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert(MODES[channels])


def _upper_bytes(image: Any) -> Any:
    import numpy as np
    from PIL import Image

    return Image.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
