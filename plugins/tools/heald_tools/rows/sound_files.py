"""A WAV file for each row, named after the row's file.

This module writes the files itself: libsndfile puts the time into files of floats, and equal runs write equal bytes.
Floats are 32 bits wide, which programs that play sounds take; integers keep their width.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heald.errors import InvalidArgument
from heald.runtime.support import whole_file

from .journal import Reached
from .results import Table
from .sounds import MOST_CHANNELS

SUFFIX = ".wav"
_PCM, _FLOAT = 1, 3  # formats of WAV
_FORMATS = {"u1": _PCM, "i2": _PCM, "i4": _PCM, "f4": _FLOAT}  # by type of the samples
_MOST_BYTES = (1 << 32) - 64


class SoundFiles:
    """A sink of one sound for each row. A row of a table is named by its file and number."""

    null_count = 0

    def __init__(self, folder: Path, rate: int) -> None:
        self.reached = Reached()
        self._folder, self._rate = folder, rate
        self._names: set[str] = set()
        with whole_file.naming(folder):
            whole_file.make_folders(folder)

    def write(self, table: Table, reached: Reached) -> None:
        self.reached = reached
        column = table[_sound_column(table)]
        rows = table.get("row")
        for index, file in enumerate(table["file"]):
            name = self._new_name(Path(file).stem if rows is None else f"{Path(file).stem}-{rows[index]}")
            whole_file.write_whole(self._folder / f"{name}{SUFFIX}", encode_wav(column[index], self._rate))

    def _new_name(self, stem: str) -> str:
        """The stem, with a number behind it where another row has it."""
        name, number = stem, 1
        while name.lower() in self._names:
            number += 1
            name = f"{stem}-{number}"
        self._names.add(name.lower())
        return name


def _sound_column(table: Table) -> str:
    """The only column of samples. Raises InvalidArgument where none or several may be it."""
    names = [name for name, column in table.items() if _is_samples(column)]
    if len(names) != 1:
        raise InvalidArgument(f"{len(names)} outputs are sounds{': ' if names else ''}{', '.join(names)}",
                              hint="--fetch names the output to write")
    return names[0]


def _is_samples(column: Any) -> bool:
    if hasattr(column, "dtype"):
        return bool(column.ndim > 1 and column.dtype.kind in "iufV")
    return len(column) > 0 and all(getattr(row, "ndim", 0) and row.dtype.kind in "iufV" for row in column)


def encode_wav(samples: Any, rate: int) -> Sequence[bytes]:
    """The parts of a WAV file of [samples], [samples, channels] or [channels, samples].

    Raises InvalidArgument for values of another shape or type, and for more bytes than a WAV file has.
    """
    import numpy as np

    array = np.asarray(samples)
    if array.ndim > 2:
        array = array.squeeze()
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim == 2 and array.shape[0] <= MOST_CHANNELS < array.shape[1]:
        array = array.T
    if array.dtype.kind in "fV":
        array = array.astype(np.float32)
    kind = f"{array.dtype.kind}{array.dtype.itemsize}"
    if array.ndim != 2 or kind not in _FORMATS or array.shape[1] > MOST_CHANNELS or array.nbytes > _MOST_BYTES:
        raise InvalidArgument(f"an output {array.dtype}{list(np.shape(samples))} of a row is no sound",
                              hint="a sound is [samples] or [samples, channels] of floats, int16, int32 or uint8")
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return [_wav_head(_FORMATS[kind], array.dtype.itemsize, array.shape, rate), data, b"\0" * (len(data) % 2)]


def _wav_head(kind: int, width: int, shape: tuple[int, ...], rate: int) -> bytes:
    """The chunks in front of the samples (RFC 2361; `fact` is for formats other than PCM)."""
    count, channels = shape
    frame = width * channels
    fields = struct.pack("<HHIIHH", kind, channels, rate, rate * frame, frame, 8 * width)
    chunks = b"fmt " + struct.pack("<I", len(fields)) + fields
    if kind != _PCM:
        fields += struct.pack("<H", 0)
        chunks = b"fmt " + struct.pack("<I", len(fields)) + fields + b"fact" + struct.pack("<II", 4, count)
    size = count * frame
    chunks += b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks) + size + size % 2) + b"WAVE" + chunks
