"""Run a model over rows of inputs, and write a row of outputs for each.

Rows keep the order of the inputs. A row that cannot be read is told by its file and counted; the others go on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from heald.errors import FailedPrecondition, HealdWarning, InvalidArgument

from ..images import check_pillow
from .answered_batch import answer_batches
from .answers import Answers
from .drawing import Drawings
from .fault_report import FaultReport
from .feed import feeds_of
from .input_rows import Rows, find_rows, is_of_pixels
from .journal import Journal, identity_of
from .output_pictures import OutputPictures
from .output_places import STDOUT, is_of_pictures, journal_path
from .picture_names import PictureNames
from .picture_sink import Painter, PictureSink, open_pictures
from .pictures import open_to_draw
from .progress import show_progress
from .request import Model, Request
from .row_batch import RowBatch
from .sinks import Sink, open_sink
from .sources import STDIN, Source


class Tally(NamedTuple):
    """`rows`: rows that the table has. `bad`: rows that could not be read. `notes`: lines about all rows.

    `earlier_rows`: The rows of the run that this one goes on with.
    """

    rows: int
    bad: int
    seconds: float
    notes: Sequence[str] = ()
    earlier_rows: int = 0


def predict(model: Model, request: Request) -> Tally:
    """Write the table.

    Raises InvalidArgument, NotFound and DataLoss for inputs that cannot be read, with `strict` for a bad row, too.
    """
    rows = find_rows(model, request)
    answers = Answers(list(rows.sources.values()), request.keep, request.outputs)
    start, bad = perf_counter(), FaultReport(strict=request.strict)
    with _open_place(model, rows, request) as sink, show_progress("running", rows.total) as tell_progress:
        reached = sink.reached
        earlier = reached
        tell_progress(reached.read)
        batches = feeds_of(_rows_behind(rows.batches, reached.read), rows.bindings)
        for batch in answer_batches(model, batches, request, rows):
            bad.tell(batch.faults)
            count = len(batch.rows) + len(batch.faults)
            reached = reached._replace(read=reached.read + count, written=reached.written + len(batch.rows),
                                       bad=reached.bad + len(batch.faults))
            if len(batch.rows):
                answers.write(sink, batch.rows, batch.outputs, reached)
            tell_progress(count)
    bad.tell_count()
    if sink.null_count:
        warnings.warn(f"{sink.null_count:,} values are null: JSON has no NaN and no infinities", HealdWarning,
                      stacklevel=2)
    return Tally(reached.written, reached.bad, perf_counter() - start, answers.notes(resumed=earlier.read > 0),
                 earlier.written)


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
    name = next((binding.input for binding in rows.bindings if is_of_pixels(binding, rows.sources)), None)
    if name is None:
        raise InvalidArgument("--draw: no input takes pictures", hint="it draws on the pictures of --input x=photos/")
    labels = options.labels.names if options.labels is not None else None
    return Drawings(options.draw, lambda file: open_to_draw(
        Path(file), model.inputs[name], name, request.preprocessing), labels, options.threshold)


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


def summary(tally: Tally, output: str) -> str:
    """The last lines of a run: notes, and how many rows, how fast, and where they are."""
    rate = (tally.rows - tally.earlier_rows) / tally.seconds if tally.seconds else 0.0
    lost = f", {tally.bad:,} left out" if tally.bad else ""
    written = "" if output == STDOUT else f"wrote {output}: "
    total = f"{written}{tally.rows:,} rows in {tally.seconds:,.1f} s, {rate:,.0f} a second{lost}"
    return "\n".join([*tally.notes, total])
