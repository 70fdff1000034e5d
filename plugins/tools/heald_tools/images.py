"""Image files as tensors, read by Pillow, an optional dependency."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from heald.api import TensorMetadata, install_hint
from heald.errors import DataLoss, ResourceExhausted, Unimplemented, describe_exception

IMAGE_FORMATS = ("PNG", "JPEG")  # by default Pillow tries all its formats, and runs programs for some
MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's modes by the tensor's number of channels


def read_image(path: Path, meta: TensorMetadata) -> Any:
    """Read an image's pixels as uint8. The tensor's last dimension gives the number of channels.

    A tensor of one more dimension gets a batch dimension: [1, height, width, channels]. A tensor of rank 2, or with a
    last dimension that cannot be channels, gets gray pixels without that dimension.
    Raises Unimplemented without Pillow, DataLoss for a file that is no image, ResourceExhausted for more pixels than
    Pillow takes.
    """
    import numpy as np

    try:
        from PIL import Image
    except ImportError:
        raise Unimplemented(f"reading '{path}' needs Pillow", hint=install_hint("pillow")) from None
    last = meta.shape[-1] if meta.shape else None
    flat = meta.rank == 2 or last not in (None, *MODES)  # the tensor has no dimension for channels
    try:
        with (warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning),
              Image.open(path, formats=IMAGE_FORMATS) as image):
            image_mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
            pixels = np.asarray(image.convert("L" if flat else MODES.get(last or 0, image_mode)))
    except (MemoryError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ResourceExhausted(f"'{path}' has too many pixels: {describe_exception(error)}",
                                hint="resize it first, or feed an .npy file") from error
    except Exception as error:  # Pillow's decoders raise any class for damaged data
        raise DataLoss(f"'{path}' is no image that Pillow can read: {describe_exception(error)}") from error
    if pixels.ndim == 2 and not flat:
        pixels = pixels[:, :, None]
    return pixels[None] if meta.rank == pixels.ndim + 1 else pixels
