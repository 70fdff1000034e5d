"""Batches of feeds, read and decoded beside the run.

The caller's thread reads rows; threads of a pool make them arrays, a few batches ahead. Batches keep the order of rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from heald.errors import DataLoss, InvalidArgument

from .columns import Binding, feed_of, without_rows
from .ordered_calls import results_in_order
from .row_batch import BadRows, Fault, RowBatch, join_batches

AHEAD = 2  # batches for each thread of the pool


class Feeds(NamedTuple):
    """One batch: the rows that are used, the arrays by input, and the rows that are not."""

    rows: RowBatch
    arrays: Mapping[str, Any]
    faults: Sequence[Fault]


def batches_of(batches: Iterator[RowBatch], size: int) -> Iterator[RowBatch]:
    """Batches of `size` rows, but the last, from batches of any size. Faults travel with the rows behind them.

    The rows and faults of each batch depend on the file alone, so that a run resumes behind another reader.
    """
    waiting: list[RowBatch] = []
    count = 0
    for batch in batches:
        start = 0
        while count + len(batch) - start >= size:
            stop = start + size - count
            yield join_batches([*waiting, batch.part(start, stop)])
            waiting, count, start = [], 0, stop
        last = batch.part(start)
        if len(last) or last.faults:
            waiting.append(last)
            count += len(last)
    if waiting:
        yield join_batches(waiting)


def side_by_side(streams: Sequence[Iterator[RowBatch]]) -> Iterator[RowBatch]:
    """The rows of streams with batches of one size, side by side.

    Raises InvalidArgument where one has more rows, DataLoss for a row that cannot be read: the later rows of its stream
    would stand beside others than theirs.
    """
    if len(streams) == 1:
        yield from streams[0]
        return
    while True:
        parts = [next(stream, None) for stream in streams]
        present = [part for part in parts if part is not None]
        if not present:
            return
        for fault in (fault for part in present for fault in part.faults):
            raise DataLoss(f"{fault.place}: {fault.reason}",
                           hint="rows of several inputs are all read; one file with all columns leaves bad rows out")
        if len(present) < len(parts) or len({len(part) for part in present}) > 1:
            raise InvalidArgument("the inputs have different numbers of rows",
                                  hint="one file with all columns keeps rows together")
        yield RowBatch(present[0].index, {name: column for part in present for name, column in part.columns.items()})


def feeds_of(batches: Iterator[RowBatch], bindings: Sequence[Binding], threads: int | None = None) -> Iterator[Feeds]:
    """Yield the feeds of batches in turn. An error of a batch is raised at its turn."""
    count = threads or os.cpu_count() or 1
    yield from results_in_order(lambda batch: make_feeds(batch, bindings), batches, threads=count,
                                most_pending=count * AHEAD, name="heald-decode")


def make_feeds(batch: RowBatch, bindings: Sequence[Binding]) -> Feeds:
    """The arrays of all inputs, without the rows that do not fit."""
    faults = [*batch.faults]
    while len(batch):
        try:
            return Feeds(batch, {binding.input: feed_of(binding, batch) for binding in bindings}, faults)
        except BadRows as bad:
            places = places_of(batch)
            faults += [Fault(places[row], reason) for row, reason in bad.reasons.items()]
            batch = without_rows(batch, bad.reasons)
    return Feeds(batch, {}, faults)


def places_of(batch: RowBatch) -> list[str]:
    """The file of each row, and its number."""
    files, rows = batch.index["file"], batch.index.get("row")
    if rows is None:
        return [str(file) for file in files]
    return [f"{file}:{row}" for file, row in zip(files, rows, strict=True)]
