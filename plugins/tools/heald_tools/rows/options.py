"""Options about input files, for the readers and decoders of all formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class ReadOptions(NamedTuple):
    """`size`: most rows of a RowBatch.

    `delimiter`: Of CSV; by default told from the file's first lines.
    `encoding`: Of texts. A byte order mark says otherwise.
    `key`: The name of the only array to read of an .npz.
    `header`: Whether the first line of CSV has the names of columns; None to tell from the file.
    """

    size: int
    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool | None = None
    key: str | None = None


class RateCheck(Protocol):
    def check(self, files: Sequence[Path]) -> None:
        """Tell once where the rates of these files and of those before differ."""


class SoundOptions(NamedTuple):
    """`rate`: Samples a second; None for each file's own. `mono`: The channels are mixed.

    `rates`: The rates of the files of this run, where files that differ are told.
    """

    rate: int | None = None
    mono: bool = False
    rates: RateCheck | None = None
