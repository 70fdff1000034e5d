"""The names of pictures that rows become: those of the rows' files.

The folders below the files' common folder stay, so photos/cat/1.jpg and photos/dog/1.jpg become cat/1.png and
dog/1.png. Rows of one table get their number behind the table's name. A name that is taken gets a number, too: letters
of either case are equal, since some file systems hold them so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from heald.errors import InvalidArgument

from .sources import STDIN


class PictureNames:
    """The name of each row's picture without its suffix, seen from the folder of pictures."""

    def __init__(self, files: Sequence[str]) -> None:
        self._stems: dict[str, str] = {}
        used = set[str]()
        self._paths = paths = {file: os.path.abspath(file) for file in files if file != STDIN}  # noqa: PTH100 - resolves no links
        common = os.path.commonpath([os.path.dirname(path) for path in paths.values()]) if paths else ""  # noqa: PTH120
        for file in files:
            stem = os.path.relpath(paths[file], common) if file != STDIN else "row"
            stem = str(PurePath(stem).with_suffix(""))
            self._stems[file] = _free_name(stem, used)

    def check_targets(self, output: str, folder: Path, suffix: str) -> None:
        """Raises InvalidArgument where a picture would replace a file of the input."""
        inputs = {path: file for file, path in self._paths.items()}
        for stem in self._stems.values():
            target = os.path.abspath(folder / f"{stem}{suffix}")  # noqa: PTH100
            if target in inputs:
                raise InvalidArgument(f"--output '{output}' would replace the input '{inputs[target]}'",
                                      hint="name another folder")

    def stem_of(self, file: str, row: int | None, output: str = "") -> str:
        """`row`: The number in a file of many rows. `output`: The name of one of several pictures of a row."""
        number = "" if row is None else f"-{row:05}"
        safe_output = re.sub(r"[^\w-]", "_", output, flags=re.ASCII)
        return f"{self._stems[file]}{number}{'.' if safe_output else ''}{safe_output}"


def _free_name(stem: str, used: set[str]) -> str:
    name, number = stem, 1
    while name.casefold() in used:
        number += 1
        name = f"{stem}-{number}"
    used.add(name.casefold())
    return name
