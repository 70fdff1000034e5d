"""Writers of tables, by the suffix of --output. A table: add a row for a new format.

Numbers keep their precision: float32 has the shortest text that reads back as
itself.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Protocol

from heald.api import Library
from heald.errors import InvalidArgument

from ..json_values import replace_by_null
from .formats import PYARROW
from .parquet_files import ParquetWriter
from .plain_values import SCALARS, plain_values
from .results import Table


class Writer(Protocol):
    """`null_count`: values that the format lacks, and that became null."""

    null_count: int

    def write(self, table: Table) -> None:
        """Write rows. All tables have the columns of the first."""

    def close(self) -> None:
        """Write the rest, and leave the file open."""


class CsvWriter:
    """Rows of comma-separated cells below a line of the columns' names (RFC 4180, lines end with \\n). A cell of more
    than one value is a JSON list; bytes are text in UTF-8, other bytes \\xNN."""

    def __init__(self, out: BinaryIO, names: Sequence[str] | None = None) -> None:
        """`names`: the columns of rows that stand before these."""
        self.null_count = 0
        self._out = out
        self._names = names

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
        self.null_count = 0

    def write(self, table: Table) -> None:
        lines = []
        for values in zip(*(plain_values(column) for column in table.values()), strict=True):
            row = dict(zip(table, values, strict=True))
            lines.append(self._line(row))
        self._out.write("".join(lines).encode())

    def _line(self, row: dict[str, Any]) -> str:
        try:
            return json.dumps(row, ensure_ascii=False, allow_nan=self._literal) + "\n"
        except ValueError:
            nulls: list[float] = []
            line = json.dumps(replace_by_null(row, nulls), ensure_ascii=False)
            self.null_count += len(nulls)
            return line + "\n"

    def close(self) -> None:
        self._out.flush()


class NpzWriter:
    """One array for each column, all rows below each other. The rows are in memory until the end."""

    def __init__(self, out: BinaryIO) -> None:
        self.null_count = 0
        self._out = out
        self._tables: list[Table] = []

    def write(self, table: Table) -> None:
        self._tables.append(table)

    def close(self) -> None:
        import zipfile

        from ..outputs import storable, write_array

        with zipfile.ZipFile(self._out, "w") as archive:
            for name in self._tables[0] if self._tables else ():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    write_array(file, storable(name, _join(name, [table[name] for table in self._tables])))


WRITERS: Mapping[str, Callable[[BinaryIO], Writer]] = {
    ".csv": CsvWriter, ".jsonl": JsonLinesWriter, ".npz": NpzWriter, ".parquet": ParquetWriter,
}
LIBRARIES: Mapping[str, Library] = {".parquet": PYARROW}  # that writers need


def make_writer(suffix: str, out: BinaryIO, nan: str) -> Writer:
    """A writer for the format of a suffix. `nan`: "null", or "literal" for JSON lines that Python alone reads."""
    return JsonLinesWriter(out, nan=nan) if suffix == ".jsonl" else WRITERS[suffix](out)


def _join(name: str, parts: Sequence[Any]) -> Any:
    """All rows of a column as one array. Raises InvalidArgument for rows of several shapes."""
    import numpy as np

    try:
        return np.concatenate([part if hasattr(part, "dtype") else np.array(_without_objects(part)) for part in parts])
    except ValueError:
        raise InvalidArgument(f"column '{name}' has rows of several shapes, which an .npz file cannot hold",
                              hint="--output FILE.jsonl") from None


def _without_objects(column: Sequence[Any]) -> Sequence[Any]:
    """The cells of a list, with JSON for lists of objects and an empty text for None."""
    has_objects = any(isinstance(cell, list) and all(isinstance(item, dict) for item in cell) for cell in column)
    if has_objects:
        return [json.dumps(cell, ensure_ascii=False) for cell in column]
    return ["" if cell is None else cell for cell in column]


def _cells(column: Any) -> Any:
    """The cells of a column, which are numbers, texts, or None for an empty cell."""
    if hasattr(column, "dtype") and column.ndim == 1 and column.dtype.kind in "iufb":
        if column.dtype.kind == "f":
            return column.astype(str).tolist()
        return column.tolist() if column.dtype.kind != "b" else ["true" if value else "false" for value in column]
    if not hasattr(column, "dtype") and set(map(type, column)) <= SCALARS:
        return column
    return [json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
            for value in plain_values(column)]
