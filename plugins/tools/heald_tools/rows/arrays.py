"""Readers of NumPy's files, whose first dimension is the rows, and of lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from heald.errors import InvalidArgument, NotFound

from .. import array_files
from .options import ReadOptions
from .row_batch import RowBatch
from .text_files import open_text, read_lines_of

VALUE = "value"  # the only column of a file that has no names


def read_npy(path: Path, options: ReadOptions) -> Iterator[RowBatch]:
    yield from _slices(path, {VALUE: array_files.read_npy(path)}, options)


def read_npz(path: Path, options: ReadOptions) -> Iterator[RowBatch]:
    with array_files.ArrayArchive(path) as arrays:
        names = arrays.names if options.key is None else [options.key]
        if not {*names} <= {*arrays.names}:
            raise NotFound(f"'{path}' has no array '{options.key}'", hint=f"it has {', '.join(arrays.names)}")
        yield from _slices(path, {name: arrays[name] for name in names}, options)


def read_lines(path: Path, options: ReadOptions) -> Iterator[RowBatch]:
    """Yield the lines of a text, each without its end; blank lines are rows, too."""
    first = 1
    with open_text(path, options.encoding) as text:
        all_lines = read_lines_of(text, path)
        while lines := [line.rstrip("\r\n") for line in islice(all_lines, options.size)]:
            rows = range(first, first + len(lines))
            yield RowBatch({"file": [str(path)] * len(lines), "row": rows}, {VALUE: lines})
            first += len(lines)


def _slices(path: Path, arrays: Mapping[str, Any], options: ReadOptions) -> Iterator[RowBatch]:
    """The rows of arrays, whose first dimensions are equal. Raises InvalidArgument."""
    lengths = {name: array.shape[0] if array.ndim else None for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or None in lengths.values():
        shape_list = ", ".join(f"{name} {list(arrays[name].shape)}" for name in arrays)
        raise InvalidArgument(f"the arrays of '{path}' have no common first dimension of rows: {shape_list}",
                              hint="without --batch a file is one value")
    count = next(iter(lengths.values()), 0) or 0
    for first in range(0, count, options.size):
        last = min(first + options.size, count)
        yield RowBatch({"file": [str(path)] * (last - first), "row": range(first + 1, last + 1)},
                       {name: array[first:last] for name, array in arrays.items()})
