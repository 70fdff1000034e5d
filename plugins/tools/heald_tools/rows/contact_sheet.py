"""A contact sheet: pictures as a model sees them, each above its name, in one picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

from heald.errors import InvalidArgument
from heald.runtime.support import whole_file

from .preprocessing import Layout, Numbers, undo_numbers

DEFAULT_FILE = "contact-sheet.png"
MOST_PICTURES = 24
COLUMNS = 6
TILE = 160  # pixels of a picture's longer side
_GAP, _CAPTION, _TEXT = 8, 18, 12  # pixels between tiles, of a caption, of its letters
_PAPER, _INK, _FRAME = (250, 250, 250), (30, 30, 30), (200, 200, 200)


def check_file(file: str) -> None:
    """Raises InvalidArgument for a file of another format."""
    if Path(file).suffix.lower() != ".png":
        raise InvalidArgument(f"--contact-sheet '{file}' is no .png file", hint=f"such as {DEFAULT_FILE}")


def write_sheet(file: Path, pictures: Sequence[Any], captions: Sequence[str]) -> None:
    """Write pictures of Pillow and their captions. Raises as `whole_file.write_whole`."""
    content = io.BytesIO()
    make_sheet(pictures, captions).save(content, "PNG")
    whole_file.write_whole(file, [content.getvalue()])


def make_sheet(pictures: Sequence[Any], captions: Sequence[str]) -> Any:
    from PIL import Image, ImageDraw, ImageFont

    columns = min(COLUMNS, len(pictures))
    width, height = TILE + _GAP, TILE + _CAPTION + _GAP
    sheet = Image.new("RGB", (columns * width + _GAP, ceil(len(pictures) / columns) * height + _GAP), _PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(_TEXT)
    for index, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        left, top = _GAP + index % columns * width, _GAP + index // columns * height
        tile = _fit(picture)
        x, y = left + (TILE - tile.width) // 2, top + (TILE - tile.height) // 2
        draw.rectangle((x - 1, y - 1, x + tile.width, y + tile.height), outline=_FRAME)
        sheet.paste(tile, (x, y))
        draw.text((left + TILE / 2, top + TILE + _CAPTION / 2), _shorten(caption, font), _INK, font, anchor="mm")
    return sheet


def picture_of_input(array: Any, layout: Layout, numbers: Numbers | None) -> Any:
    """The picture that an array of a model's input shows, its range undone to 0 to 255."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(array)
    if not layout.has_channels:
        pixels = pixels[:, :, None]
    elif layout.channels_first:
        pixels = pixels.transpose(1, 2, 0)
    shown = undo_numbers(pixels, numbers)
    return Image.fromarray(shown[:, :, 0] if shown.shape[2] == 1 else shown).convert("RGB")


def _fit(picture: Any) -> Any:
    """The picture in the size of a tile. Small ones grow by a whole factor, so that their pixels show."""
    from PIL import Image

    longer = max(picture.size)
    if longer <= TILE:
        factor = TILE // longer
        return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
    return picture.resize([max(1, side * TILE // longer) for side in picture.size], Image.Resampling.BOX)


def _shorten(caption: str, font: Any) -> str:
    """The end of a name that is wider than a tile."""
    text = "".join(letter if letter.isprintable() else "?" for letter in caption)
    start = 0
    while font.getlength(text if not start else f"...{text[start:]}") > TILE and start < len(text):
        start += 1
    return text if not start else f"...{text[start:]}"
