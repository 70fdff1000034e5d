"""Run a model over rows of inputs, and write a row of outputs for each.

Rows keep the order of the inputs. A row that cannot be read is told by its file and counted; the others go on.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from heald.api import TensorMetadata, dtypes
from heald.errors import DataLoss, FailedPrecondition, HealdWarning, InvalidArgument

from ..images import check_pillow
from .answers import Answers
from .columns import Binding, bind_columns
from .drawing import Drawings
from .feed import Feeds, batches_of, feeds_of, side_by_side
from .formats import format_named
from .journal import Journal, identity_of
from .options import ReadOptions
from .output_options import OutputOptions
from .output_pictures import OutputPictures
from .picture_names import PictureNames
from .picture_sink import Painter, PictureSink, open_pictures
from .pictures import open_to_draw
from .preprocessing import Preprocessing
from .progress import show_progress
from .rescaling import FLOATS, FirstOps, tell_range
from .results import check_rows, stack_rows
from .row_batch import Fault, RowBatch
from .sinks import STDOUT, Sink, is_of_pictures, journal_path, open_sink
from .sources import STDIN, Source, find_source

DEFAULT_BATCH = 32
MOST_TOLD = 20  # bad rows that are told one by one


class Request(NamedTuple):
    """The rows, and the place of the table.

    `model`: The model's file or folder. `options_text`: All options, for the journal.
    `sources`: The text of each source of rows, by the input that it is for; None for all inputs, by its columns.
    `constants`: Values that are the same for all rows, by input.
    `maps`: The columns of an input, where their names do not say so.
    `keep`: Columns of the sources that the table has, too.
    `limit`: Most rows; None for all.
    """

    model: Path
    sources: Mapping[str | None, str]
    constants: Mapping[str, Any]
    output: str
    options_text: str
    batch: int | None = None
    maps: Mapping[str, Sequence[str]] = {}
    keep: Sequence[str] = ()
    limit: int | None = None
    strict: bool = False
    json_lines: bool = False
    nan: str = "null"
    resume: bool = False
    outputs: OutputOptions = OutputOptions()
    preprocessing: Preprocessing = Preprocessing()
    options: ReadOptions = ReadOptions(DEFAULT_BATCH)


class Model(NamedTuple):
    """`step`: from the arrays of `inputs`, in order, to the arrays of `outputs`, in order.

    `first_ops`: From an input's name to the first ops behind it; None for a model without a graph.
    """

    inputs: Mapping[str, TensorMetadata]
    outputs: Sequence[str]
    step: Callable[..., Sequence[Any]]
    first_ops: Callable[[str], FirstOps] | None = None


class Tally(NamedTuple):
    """`rows`: rows that the table has. `bad`: rows that could not be read. `notes`: lines about all rows."""

    rows: int
    bad: int
    seconds: float
    notes: Sequence[str] = ()


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
        if _is_of_pixels(binding, sources) and model.first_ops is not None and binding.meta.dtype in FLOATS:
            tell_range(binding.input, model.first_ops(binding.input),
                       has_range=request.preprocessing.numbers is not None)


def predict(model: Model, request: Request) -> Tally:
    """Write the table.

    Raises InvalidArgument, NotFound and DataLoss for inputs that cannot be read, with `strict` for a bad row, too.
    """
    rows = find_rows(model, request)
    answers = Answers(list(rows.sources.values()), request.keep, request.outputs)
    start, bad = perf_counter(), FaultReport(strict=request.strict)
    with _open_place(model, rows, request) as sink, show_progress("running", rows.total) as tell_progress:
        reached = sink.reached
        rows_before = reached.read
        tell_progress(reached.read)
        for feeds in feeds_of(_rows_behind(rows.batches, reached.read), rows.bindings):
            bad.tell(feeds.faults)
            count = len(feeds.rows) + len(feeds.faults)
            reached = reached._replace(read=reached.read + count, written=reached.written + len(feeds.rows),
                                       bad=reached.bad + len(feeds.faults))
            if len(feeds.rows):
                answers.write(sink, feeds.rows, _run(model, feeds, request, rows), reached)
            tell_progress(count)
    bad.tell_count()
    if sink.null_count:
        warnings.warn(f"{sink.null_count:,} values are null: JSON has no NaN and no infinities", HealdWarning,
                      stacklevel=2)
    return Tally(reached.written, reached.bad, perf_counter() - start, answers.notes(resumed=rows_before > 0))


@contextmanager
def _open_place(model: Model, rows: Rows, request: Request) -> Iterator[Sink | PictureSink]:
    """Yield the place of the answers."""
    journal = _journal(rows.sources, request)
    if not is_of_pictures(request.output):
        with open_sink(request.output, journal, json_lines=request.json_lines, nan=request.nan,
                       sound_rate=request.preprocessing.sound.rate) as sink:
            yield sink
        return
    check_pillow(f"--output '{request.output}'")
    files = [str(file) for file in next(iter(rows.sources.values())).files]
    with open_pictures(request.output, journal, PictureNames(files), _painter(model, rows, request)) as pictures:
        yield pictures


def _painter(model: Model, rows: Rows, request: Request) -> Painter:
    """Drawings on the rows' pictures, or pictures of the outputs. Raises InvalidArgument for rows without pictures."""
    options = request.outputs
    if not options.draw:
        return OutputPictures(options.output_range)
    name = next((binding.input for binding in rows.bindings if _is_of_pixels(binding, rows.sources)), None)
    if name is None:
        raise InvalidArgument("--draw: no input takes pictures", hint="it draws on the pictures of --input x=photos/")
    labels = options.labels.names if options.labels is not None else None
    return Drawings(options.draw, lambda file: open_to_draw(
        Path(file), model.inputs[name], name, request.preprocessing), labels, options.threshold)


def _is_of_pixels(binding: Binding, sources: Mapping[str | None, Source]) -> bool:
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
    """The rows of all files. The only column of a source for one input has the input's name."""
    read = _load(source.format.reader)
    for file in source.files:
        for batch in read(file, options):
            only = len(batch.columns) == 1 and name is not None
            yield replace(batch, columns={name: next(iter(batch.columns.values()))}) if only else batch


def _journal(sources: Mapping[str | None, Source], request: Request) -> Journal | None:
    """The journal of an output that has one. Raises FailedPrecondition for rows of standard input with --resume."""
    path = journal_path(request.output)
    if path is None:
        return None
    files = [file for source in sources.values() for file in source.files]
    if any(str(file) == STDIN for file in files):
        if request.resume:
            raise FailedPrecondition("--resume: rows of standard input cannot be read again")
        return None
    return Journal(path, identity_of(request.model, files, request.options_text), resume=request.resume)


def _rows_behind(batches: Iterator[RowBatch], count: int) -> Iterator[RowBatch]:
    """The batches behind the first `count` rows, good and bad, which are whole batches."""
    for batch in batches:
        if count <= 0:
            yield batch
        count -= len(batch) + len(batch.faults)


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


def _run(model: Model, feeds: Feeds, request: Request, rows: Rows) -> dict[str, Any]:
    """The outputs of a batch, whose first dimension is the rows.

    A model whose batch is fixed gets the last row again and again behind the last rows.
    """
    if rows.one_by_one:
        return _run_one_by_one(model, feeds, request)
    count, size = len(feeds.rows), rows.size
    arrays = [request.constants[name] if name in request.constants else
              _fill_batch(feeds.arrays[name], meta, count, size) for name, meta in model.inputs.items()]
    outputs = dict(zip(model.outputs, model.step(*arrays), strict=True))
    is_fixed = any(meta.shape and meta.shape[0] is not None for name, meta in model.inputs.items()
                   if name not in request.constants)
    check_rows(outputs, size if is_fixed else count)
    return {name: array[:count] for name, array in outputs.items()}


def _fill_batch(array: Any, meta: TensorMetadata, count: int, size: int) -> Any:
    import numpy as np

    if not meta.shape or meta.shape[0] is None or count == size:
        return array
    return np.concatenate([array, np.repeat(array[-1:], size - count, axis=0)])


def _run_one_by_one(model: Model, feeds: Feeds, request: Request) -> dict[str, Any]:
    """The outputs of a model that takes one row at a time, below each other."""
    values: dict[str, list[Any]] = {name: [] for name in model.outputs}
    for row in range(len(feeds.rows)):
        arrays = [request.constants[name] if name in request.constants else feeds.arrays[name][row]
                  for name in model.inputs]
        for name, value in zip(model.outputs, model.step(*arrays), strict=True):
            values[name].append(value)
    return {name: stack_rows(of_rows) for name, of_rows in values.items()}


class FaultReport:
    """Tells the rows that cannot be read, the first of them one by one, and counts all."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self.count = 0

    def tell(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            if self._strict:
                raise DataLoss(f"{fault.place}: {fault.reason}", hint="without --strict the other rows go on")
            self.count += 1
            if self.count <= MOST_TOLD:
                warnings.warn(f"{fault.place}: {fault.reason}; left out", HealdWarning, stacklevel=2)

    def tell_count(self) -> None:
        if self.count > MOST_TOLD:
            warnings.warn(f"{self.count - MOST_TOLD:,} more rows are left out", HealdWarning, stacklevel=2)


def summary(tally: Tally, output: str) -> str:
    """The last lines of a run: notes, and how many rows, how fast, and where they are."""
    rate = tally.rows / tally.seconds if tally.seconds else 0.0
    lost = f", {tally.bad:,} left out" if tally.bad else ""
    written = "" if output == STDOUT else f"wrote {output}: "
    total = f"{written}{tally.rows:,} rows in {tally.seconds:,.1f} s, {rate:,.0f} a second{lost}"
    return "\n".join([*tally.notes, total])
