"""Writers of tables, by the suffix of --output. A table: add a row for a new format.

A file gets its name when it is whole. Numbers keep their precision: float32 has the shortest text that reads back as
itself.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from heald.errors import InvalidArgument
from heald.runtime.support import whole_file

from .results import Table

STDOUT = "-"


class Writer(Protocol):
    def write(self, table: Table) -> None:
        """Write rows. All tables have the columns of the first."""

    def close(self) -> None:
        """Write the rest, and leave the file open."""


class CsvWriter:
    """Rows of comma-separated cells below a line of the columns' names (RFC 4180, lines end with \\n). A cell of more
    than one value is a JSON list; bytes are text in UTF-8, other bytes \\xNN."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._names: list[str] | None = None

    def write(self, table: Table) -> None:
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        if self._names is None:
            self._names = list(table)
            rows.writerow(self._names)
        rows.writerows(zip(*(_cells(table[name]) for name in self._names), strict=True))
        self._out.write(text.getvalue().encode())

    def close(self) -> None:
        self._out.flush()


class JsonLinesWriter:
    """A JSON object for each row. NaN and infinities, which JSON lacks, are null, or as `nan` says Python's words."""

    def __init__(self, out: BinaryIO, *, nan: str = "null") -> None:
        self._out = out
        self._literal = nan == "literal"
        self.replaced = 0  # values that became null

    def write(self, table: Table) -> None:
        lines = []
        for values in zip(*(_values(column) for column in table.values()), strict=True):
            row = dict(zip(table, values, strict=True))
            lines.append(self._line(row))
        self._out.write("".join(lines).encode())

    def _line(self, row: Mapping[str, Any]) -> str:
        try:
            return json.dumps(row, ensure_ascii=False, allow_nan=self._literal) + "\n"
        except ValueError:
            return json.dumps({name: self._finite(value) for name, value in row.items()}, ensure_ascii=False) + "\n"

    def _finite(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._finite(item) for item in value]
        if isinstance(value, float) and value - value != 0:
            self.replaced += 1
            return None
        return value

    def close(self) -> None:
        self._out.flush()


class NpzWriter:
    """One array for each column, all rows below each other. The rows are in memory until the end."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._tables: list[Table] = []

    def write(self, table: Table) -> None:
        self._tables.append(table)

    def close(self) -> None:
        import zipfile

        import numpy as np

        from ..outputs import storable, write_array

        with zipfile.ZipFile(self._out, "w") as archive:
            for name in self._tables[0] if self._tables else ():
                parts = [part if hasattr(part, "dtype") else np.array(part) for part in
                         (table[name] for table in self._tables)]
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    write_array(file, storable(name, np.concatenate(parts)))


WRITERS: Mapping[str, Callable[[BinaryIO], Writer]] = {
    ".csv": CsvWriter, ".jsonl": JsonLinesWriter, ".npz": NpzWriter,
}


def check_output(output: str) -> None:
    """Raises InvalidArgument for a file of no known format."""
    if output != STDOUT and Path(output).suffix.lower() not in WRITERS:
        raise InvalidArgument(f"--output '{output}' is no file of a known format", hint=f"known: {', '.join(WRITERS)}")


@contextmanager
def open_writer(output: str, *, json_lines: bool = False) -> Iterator[Writer]:
    """Yield a writer of a file, or of standard output: CSV there, or JSON lines."""
    if output == STDOUT:
        writer: Writer = (JsonLinesWriter if json_lines else CsvWriter)(sys.stdout.buffer)
        yield writer
        writer.close()
        return
    with whole_file.writing_file(Path(output)) as out:
        writer = WRITERS[Path(output).suffix.lower()](out)
        yield writer
        writer.close()


def _cells(column: Any) -> Any:
    """The texts of a column's cells."""
    if hasattr(column, "dtype") and column.ndim == 1 and column.dtype.kind in "iufb":
        return column.astype(str) if column.dtype.kind != "b" else ["true" if value else "false" for value in column]
    return [json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value for value in _values(column)]


def _values(column: Any) -> list[Any]:
    """A column as Python values: float32 by its shortest text, bytes as text."""
    import numpy as np

    if not hasattr(column, "dtype"):
        return [_plain(value) for value in column]
    if column.dtype.kind == "V":  # bfloat16 and kin
        column = column.astype(np.float32)
    if column.dtype.kind == "f" and column.dtype.itemsize < 8:
        column = column.astype(str).astype(np.float64)
    return [_plain(value) for value in column.tolist()]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if isinstance(value, complex) else value
