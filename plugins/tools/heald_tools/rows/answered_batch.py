"""The outputs of batches, in the order of rows.

A local model runs one batch at a time in the caller's thread. A served model has several batches in flight, so that
the server works while an answer travels; so many are in memory, and no more. A batch that the server refuses for its
values runs again row by row, and the rows that fail are faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from heald.errors import HealdError

from .batch_run import run_batch
from .columns import without_rows
from .feed import Feeds, places_of
from .input_rows import Rows
from .ordered_calls import results_in_order
from .request import Model, Request
from .row_batch import Fault, RowBatch


class AnsweredBatch(NamedTuple):
    """`rows`: the rows that have outputs. `outputs`: by name, a row for each; empty without rows."""

    rows: RowBatch
    outputs: Mapping[str, Any]
    faults: Sequence[Fault]


def answer_batches(model: Model, batches: Iterator[Feeds], request: Request, rows: Rows) -> Iterator[AnsweredBatch]:
    """Yield the answers of batches in turn. An error of a batch is raised at its turn."""
    if model.in_flight == 1:
        for feeds in batches:
            yield answer_batch(model, feeds, request, rows)
        return
    yield from results_in_order(lambda feeds: answer_batch(model, feeds, request, rows), batches,
                                threads=model.in_flight, most_pending=model.in_flight, name="heald-request")


def answer_batch(model: Model, feeds: Feeds, request: Request, rows: Rows) -> AnsweredBatch:
    if not len(feeds.rows):
        return AnsweredBatch(feeds.rows, {}, feeds.faults)
    try:
        return AnsweredBatch(feeds.rows, run_batch(model, feeds, request, rows), feeds.faults)
    except model.row_errors as error:
        if len(feeds.rows) == 1:
            return _without_failed(feeds, {0: _reason_of(error)}, [])
    outputs, reasons = [], {}
    for row in range(len(feeds.rows)):
        arrays = {name: array[row : row + 1] for name, array in feeds.arrays.items()}
        try:
            outputs.append(run_batch(model, Feeds(feeds.rows.part(row, row + 1), arrays, []), request, rows))
        except model.row_errors as error:
            reasons[row] = _reason_of(error)
    return _without_failed(feeds, reasons, outputs)


def _reason_of(error: HealdError) -> str:
    return error.message


def _without_failed(feeds: Feeds, reasons: Mapping[int, str], outputs: Sequence[Mapping[str, Any]]) -> AnsweredBatch:
    import numpy as np

    places = places_of(feeds.rows)
    faults = [*feeds.faults, *(Fault(places[row], reason) for row, reason in reasons.items())]
    joined = {name: np.concatenate([of_row[name] for of_row in outputs]) for name in outputs[0]} if outputs else {}
    return AnsweredBatch(without_rows(feeds.rows, reasons), joined, faults)
