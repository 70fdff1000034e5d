"""Readers of tables as text: CSV and JSON lines. A row that cannot be read is a fault of its own.

The cells of CSV stay texts here: 00123 is a number for one input and a text for another.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Generator, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from heald.errors import DataLoss, InvalidArgument

from .arrow_tables import CHUNK, Chunks, columns_of_chunk, end_of_rows, is_fast
from .options import ReadOptions
from .row_batch import Fault, RowBatch
from .text_files import LONGEST_LINE, Prefixed, open_encoded, open_text, read_lines_of

DEEPEST_JSON = 64  # nested lists and objects of one row
_DELIMITERS = ",\t;|"
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"')
_BRACKET = re.compile(r"[\[\]{}]")


def read_csv(path: Path, options: ReadOptions) -> Iterator[RowBatch]:
    """Yield the rows of a CSV file.

    The first line has the names of the columns where none of its cells is a number, unless `options` says otherwise;
    without it the columns are called 0, 1, ... The delimiter is that of the four usual ones which the first line has
    most of, unless `options` names one.
    """
    csv.field_size_limit(LONGEST_LINE)
    if options.delimiter is not None and (len(options.delimiter) != 1 or options.delimiter in '"\r\n'):
        raise InvalidArgument(f"--delimiter '{options.delimiter}' is not one character between cells")
    with open_encoded(path, options.encoding) as (data, encoding):
        if not is_fast(path, encoding, options.delimiter):
            with io.TextIOWrapper(data, encoding, newline="") as text:
                yield from _read_plain(path, text, options)
            return
        yield from _read_by_pyarrow(path, data, encoding, options)


def _read_plain(path: Path, text: TextIO, options: ReadOptions) -> Iterator[RowBatch]:
    lines = read_lines_of(text, path)
    first = next(lines, "")
    rows = csv.reader(chain([first], lines), delimiter=_delimiter(path, first, options), strict=True)
    names, head = _names(_first_row(path, rows), options)
    yield from _batches_of_csv(path, rows, names, head, options.size)


def _read_by_pyarrow(path: Path, data: BinaryIO, encoding: str, options: ReadOptions) -> Iterator[RowBatch]:
    """Yield the rows of a file in UTF-8. Python reads chunks that pyarrow may read otherwise."""
    line = data.readline(CHUNK)
    delimiter = _delimiter(path, line.decode(encoding, "replace"), options)
    if end_of_rows(line, delimiter) != len(line) or b"\r" in line.removesuffix(b"\r\n"):
        with _decode(Prefixed(line, data), encoding) as text:
            yield from _read_plain(path, text, options)
        return
    cells = _first_row(path, csv.reader([line.decode(encoding)], delimiter=delimiter, strict=True))
    names, head = _names(cells, options)
    chunks = Chunks(data, line if head else b"", delimiter)
    first = 1
    for chunk in chunks:
        columns = columns_of_chunk(chunk, len(names), delimiter)
        if columns is None:
            rows = csv.reader(io.StringIO(chunk.decode(encoding), newline=""), delimiter=delimiter, strict=True)
            first = yield from _batches_of_csv(path, rows, names, [], options.size, first)
        else:
            count = len(columns[0])
            index: dict[str, Sequence[Any]] = {"file": [str(path)] * count, "row": range(first, first + count)}
            yield RowBatch(index, dict(zip(names, columns, strict=True)))
            first += count
    if chunks.remainder:
        with _decode(Prefixed(chunks.remainder, data), encoding) as text:
            rows = csv.reader(read_lines_of(text, path), delimiter=delimiter, strict=True)
            yield from _batches_of_csv(path, rows, names, [], options.size, first)


def _decode(data: io.RawIOBase, encoding: str) -> TextIO:
    return io.TextIOWrapper(io.BufferedReader(data), encoding, newline="")


def _delimiter(path: Path, line: str, options: ReadOptions) -> str:
    """The delimiter of a file whose first line is `line`. Raises DataLoss for an empty line."""
    if not line.strip():
        raise DataLoss(f"'{path}' is empty")
    return options.delimiter or ("\t" if ".tsv" in path.suffixes else _most_frequent(line))


def _first_row(path: Path, rows: Iterator[list[str]]) -> list[str]:
    try:
        return next(rows)
    except csv.Error as error:
        raise DataLoss(f"'{path}', first row: {error}") from error


def _most_frequent(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _names(cells: list[str], options: ReadOptions) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the first line where it is a row."""
    has_header = options.header
    if has_header is None:
        has_header = not any(_is_number(cell) for cell in cells)
    if not has_header:
        return [str(index) for index in range(len(cells))], [cells]
    names = [cell.strip() for cell in cells]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidArgument(f"two columns are called '{twice}'", hint="--no-header reads the first line as a row")
    return names, []


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _batches_of_csv(path: Path, rows: Iterator[list[str]], names: list[str], head: list[list[str]], size: int,
                    first: int = 1) -> Generator[RowBatch, None, int]:
    """Yield the rows, which are numbered from `first` on. Return the number behind the last one."""
    while True:
        numbered, faults = _take_rows(path, rows, head, first, size, len(names))
        head = []
        if not numbered and not faults:
            return first
        first += len(numbered) + len(faults)
        cells = zip(*(row for _, row in numbered), strict=True) if numbered else ([] for _ in names)
        columns = {name: list(values) for name, values in zip(names, cells, strict=True)}
        index: dict[str, list[Any]] = {"file": [str(path)] * len(numbered), "row": [number for number, _ in numbered]}
        yield RowBatch(index, columns, faults)


def _take_rows(path: Path, rows: Iterator[list[str]], head: list[list[str]], first: int, size: int, width: int,
               ) -> tuple[list[tuple[int, list[str]]], list[Fault]]:
    """The next rows with their numbers, and those with too few or many cells. Blank lines are no rows."""
    numbered: list[tuple[int, list[str]]] = [(first, row) for row in head]
    faults: list[Fault] = []
    number = first + len(head)
    try:
        while len(numbered) + len(faults) < size:
            more = list(islice(filter(None, rows), size - len(numbered) - len(faults)))
            if not more:
                break
            for row in more:
                if len(row) == width:
                    numbered.append((number, row))
                else:
                    faults.append(Fault(f"{path}:{number}", f"{len(row)} cells, where the file has {width} columns",
                                        len(numbered)))
                number += 1
    except csv.Error as error:
        raise DataLoss(f"'{path}', row {number}: {error}") from error
    return numbered, faults


def read_json_lines(path: Path, options: ReadOptions) -> Iterator[RowBatch]:
    """Yield the rows of a file with a JSON object on each line. A key that a row lacks is None there."""
    with open_text(path, options.encoding) as text:
        numbered = ((number, line) for number, line in enumerate(read_lines_of(text, path), 1) if line.strip())
        while lines := list(islice(numbered, options.size)):
            rows: list[tuple[int, dict[str, Any]]] = []
            faults: list[Fault] = []
            for number, line in lines:
                row, reason = _json_object(line)
                if row is None:
                    faults.append(Fault(f"{path}:{number}", reason, len(rows)))
                else:
                    rows.append((number, row))
            names = dict.fromkeys(name for _, row in rows for name in row)
            columns = {name: [row.get(name) for _, row in rows] for name in names}
            index: dict[str, list[Any]] = {"file": [str(path)] * len(rows), "row": [number for number, _ in rows]}
            yield RowBatch(index, columns, faults)


def _json_object(line: str) -> tuple[dict[str, Any] | None, str]:
    if _depth(line) > DEEPEST_JSON:
        return None, f"more than {DEEPEST_JSON} nested lists and objects"
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return None, f"no JSON: {error}"
    return (value, "") if isinstance(value, dict) else (None, "no JSON object")


def _depth(line: str) -> int:
    """The most lists and objects that are open at once; 0 for a line that has few. Brackets in texts do not count."""
    if line.count("[") + line.count("{") <= DEEPEST_JSON:
        return 0
    deepest = depth = 0
    for bracket in _BRACKET.findall(_JSON_TEXT.sub("", line)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest
