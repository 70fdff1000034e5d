"""The rows that a run reads: their sources, the columns of the inputs, and their batches.

Rows keep the order of the inputs. All files of a source have the columns of its first one; a file that lacks one of
them is a fault.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

from heald.api import TensorMetadata, dtypes
from heald.errors import InvalidArgument

from .columns import Binding, bind_columns
from .feed import batches_of, side_by_side
from .formats import format_named
from .options import ReadOptions
from .request import DEFAULT_BATCH, Model, Request
from .rescaling import FLOATS, tell_range
from .row_batch import Fault, RowBatch
from .sources import Source, find_source


class Rows(NamedTuple):
    """Rows that are found, and not read but the first batch. `total`: None where it is not known before the end."""

    sources: Mapping[str | None, Source]
    bindings: Sequence[Binding]
    batches: Iterator[RowBatch]
    size: int
    total: int | None

    @property
    def one_by_one(self) -> bool:
        """True for a model that takes one row at a time."""
        return not all(binding.batched for binding in self.bindings)


def find_rows(model: Model, request: Request) -> Rows:
    """Find the sources, and choose the columns of the inputs.

    Raises InvalidArgument, NotFound and DataLoss for inputs that cannot be read.
    """
    inputs = model.inputs
    size = _batch_size(inputs, request)
    sources = {name: find_source(text, name or "all inputs", format_named("CSV"))
               for name, text in request.sources.items()}
    streams, total = _streams(inputs, sources, request, size)
    batches = side_by_side(streams)
    first = next(batches, None)
    if first is None:
        raise InvalidArgument("the inputs have no rows")
    bindings = _bindings(inputs, first, request)
    _check_columns(request.keep, first)
    _tell_ranges(model, sources, bindings, request)
    return Rows(sources, bindings, _limit_rows(chain([first], batches), request.limit), size,
                min(total, request.limit) if total is not None and request.limit is not None else total)


def _tell_ranges(model: Model, sources: Mapping[str | None, Source], bindings: Sequence[Binding], request: Request,
                 ) -> None:
    """Tell on stderr where the range of pictures is set twice, or not at all."""
    for binding in bindings:
        if is_of_pixels(binding, sources) and model.first_ops is not None and binding.meta.dtype in FLOATS:
            tell_range(binding.input, model.first_ops(binding.input),
                       has_range=request.preprocessing.numbers is not None)


def is_of_pixels(binding: Binding, sources: Mapping[str | None, Source]) -> bool:
    source = sources.get(binding.input, sources.get(None))
    return source is not None and source.format is format_named("picture") and binding.meta.dtype is not dtypes.string


def _batch_size(inputs: Mapping[str, TensorMetadata], request: Request) -> int:
    """The model's own batch where it has one, else the user's. Raises InvalidArgument where they differ."""
    fixed = {meta.shape[0] for name, meta in inputs.items()
             if meta.shape and meta.shape[0] is not None and name not in request.constants}
    if len(fixed) == 1 and (request.batch is None or request.batch in fixed):
        return fixed.pop()
    if fixed and request.batch is not None and request.batch not in fixed:
        shape_list = ", ".join(f"{name} {meta}" for name, meta in inputs.items())
        raise InvalidArgument(f"--batch {request.batch}: the model's own batch is {min(fixed)} ({shape_list})")
    return request.batch or DEFAULT_BATCH


def _streams(
    inputs: Mapping[str, TensorMetadata], sources: Mapping[str | None, Source], request: Request, size: int
) -> tuple[list[Iterator[RowBatch]], int | None]:
    """The rows of each source in batches of one size, and the number of rows where each file is one."""
    streams, counts = [], []
    others = [name for name in inputs if name not in request.constants and name not in request.sources]
    options = request.options._replace(size=size)
    for name, source in sources.items():
        if source.format.decoder:
            rows = _rows_of_files(source, _input_of_files(source, name, others), inputs, request, size)
        else:
            rows = _rows_of(source, options._replace(key=source.key), name)
        streams.append(batches_of(rows, size))
        counts.append(len(source.files) if not source.format.reader else None)
    return streams, counts[0]


def _input_of_files(source: Source, name: str | None, others: Sequence[str]) -> str:
    """The input that files feed, each a row. Raises InvalidArgument where the user must name it."""
    if name is not None:
        return name
    if len(others) != 1:
        raise InvalidArgument(f"'{source.text}' names no input, and the model has {len(others)}: {', '.join(others)}",
                              hint=f"--input NAME='{source.text}'")
    return others[0]


def _rows_of_files(source: Source, name: str, inputs: Mapping[str, TensorMetadata], request: Request, size: int,
                   ) -> Iterator[RowBatch]:
    make_column = _load(source.format.decoder)
    for first in range(0, len(source.files), size):
        files = source.files[first:first + size]
        yield RowBatch({"file": [str(file) for file in files]},
                       {name: make_column(files, inputs[name], name, request.preprocessing)})


def _load(function: str) -> Any:
    """The function of this room at "module:function"."""
    module, _, name = function.partition(":")
    return getattr(import_module(f".{module}", __package__), name)


def _rows_of(source: Source, options: ReadOptions, name: str | None) -> Iterator[RowBatch]:
    """The rows of all files. The only column of a source for one input has the input's name. A file that lacks a column
    of the first one is a fault."""
    read = _load(source.format.reader)
    names: list[str] = []
    for file in source.files:
        for batch in read(file, options):
            rows = _name_only_column(batch, name)
            names = names or list(rows.columns)
            missing = next((column for column in names if column not in rows.columns), None)
            if missing is not None and source.format.has_same_columns:
                yield RowBatch({"file": [], "row": []}, {}, [
                    Fault(str(file), f"no column '{missing}', which '{source.files[0]}' has")])
                break
            yield rows


def _name_only_column(batch: RowBatch, name: str | None) -> RowBatch:
    if len(batch.columns) != 1 or name is None:
        return batch
    return replace(batch, columns={name: next(iter(batch.columns.values()))})


def _limit_rows(batches: Iterator[RowBatch], limit: int | None) -> Iterator[RowBatch]:
    left = sys.maxsize if limit is None else limit
    for batch in batches:
        if len(batch) >= left:
            yield batch.part(0, left)
            return
        left -= len(batch)
        yield batch


def _bindings(inputs: Mapping[str, TensorMetadata], sample: RowBatch, request: Request) -> list[Binding]:
    """The columns of each input. A column that is kept feeds an input where its name or --map says so."""
    needed = {name: meta for name, meta in inputs.items() if name not in request.constants}
    kept_only = {*request.keep} - {*inputs} - {column for columns in request.maps.values() for column in columns}
    input_columns = {name: column for name, column in sample.columns.items() if name not in kept_only}
    return bind_columns(needed, RowBatch(sample.index, input_columns), request.maps)


def _check_columns(keep: Sequence[str], sample: RowBatch) -> None:
    for name in keep:
        if name not in sample.columns:
            raise InvalidArgument(f"--keep {name}: there is no such column",
                                  hint=f"the columns: {', '.join(sample.columns)}")
