"""CSV by pyarrow, with the rows that Python's csv module reads.

A large file is cut into chunks of whole rows. pyarrow reads a chunk where every quote opens or closes a cell: the
quotes before a byte then say whether it stands in a quoted cell, so that line ends of cells and of rows are told apart.
From the first other quote on, Python reads the file to its end. A chunk with a row of too few or many cells goes to
Python alone, which tells the fault.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .text_column import TextColumn

SMALLEST_FILE = 1 << 20  # bytes: importing pyarrow takes longer than reading a smaller one
CHUNK = 1 << 20  # bytes that are read together
LARGEST_CHUNK = 1 << 23  # bytes that may be searched for the end of a row
QUOTE, NEWLINE, RETURN = b'"\n\r'


def is_fast(path: Path, encoding: str, delimiter: str | None) -> bool:
    """True for a file that pyarrow reads faster, where it is installed."""
    if codecs.lookup(encoding).name != "utf-8" or not (delimiter is None or delimiter.isascii()):
        return False
    try:
        if path.stat().st_size < SMALLEST_FILE:
            return False
        import pyarrow.csv  # noqa: F401
    except (ImportError, OSError):  # OSError: standard input
        return False
    return True


class Chunks:
    """The rest of a file in chunks of whole rows. `remainder`: the bytes from which on Python must read, after the last
    chunk."""

    def __init__(self, file: BinaryIO, start: bytes, delimiter: str) -> None:
        self.remainder = b""
        self._file = file
        self._start = start
        self._delimiter = delimiter

    def __iter__(self) -> Iterator[bytes]:
        waiting = self._start
        while True:
            more = self._file.read(CHUNK)
            waiting += more
            if not waiting:
                return
            end = end_of_rows(waiting, self._delimiter) if more else len(waiting)
            if end is None or (end == 0 and len(waiting) > LARGEST_CHUNK) or (
                    not more and end_of_rows(waiting + b"\n", self._delimiter) != end + 1):
                self.remainder = waiting
                return
            if end:
                yield waiting[:end]
            waiting = waiting[end:]


def end_of_rows(data: bytes, delimiter: str) -> int | None:
    """The end of the last whole row in bytes that begin with a row; 0 where none is whole.

    None stands for a quote that neither opens nor closes a cell.
    """
    if QUOTE not in data:
        return data.rfind(b"\n") + 1
    import numpy as np

    values = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(values == QUOTE)
    ends = np.flatnonzero(values == NEWLINE)
    whole = ends[np.searchsorted(quotes, ends) % 2 == 0]
    end = int(whole[-1]) + 1 if len(whole) else 0
    quotes = quotes[:np.searchsorted(quotes, end)]
    return end if _quotes_are_regular(values, quotes, delimiter) else None


def _quotes_are_regular(values: Any, quotes: Any, delimiter: str) -> bool:
    """True where each first quote of a pair begins a cell, and each second one ends a cell, or both are one quote of
    its text."""
    import numpy as np

    borders = np.zeros(256, bool)
    borders[[ord(delimiter), NEWLINE, RETURN]] = True
    opening, closing = quotes[::2], quotes[1::2]
    adjoins = closing[:-1] + 1 == opening[1:]
    opens = borders[values[opening - 1]] | (opening == 0)
    closes = borders[values[closing + 1]]
    return bool(opens[:1].all() and (opens[1:] | adjoins).all() and closes[-1:].all() and (closes[:-1] | adjoins).all())


def columns_of_chunk(chunk: bytes, width: int, delimiter: str) -> list[TextColumn] | None:
    """The columns of a chunk; None where a row has too few or many cells, or the bytes are no text in UTF-8."""
    import pyarrow
    from pyarrow import csv

    names = [str(index) for index in range(width)]
    bad_rows: list[object] = []

    def skip_row(row: object) -> str:
        bad_rows.append(row)
        return "skip"

    try:
        table = csv.read_csv(
            pyarrow.BufferReader(chunk),
            csv.ReadOptions(use_threads=False, block_size=len(chunk) + 1, column_names=names),
            csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip_row),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False))
    except pyarrow.ArrowInvalid:
        return None
    if bad_rows:
        return None
    return [TextColumn(column.combine_chunks()) for column in table.columns]
