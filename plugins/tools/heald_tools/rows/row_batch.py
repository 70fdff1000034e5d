"""Rows that are read together, by column. Readers yield them, and all else of this room takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .text_column import TextColumn


class Undecoded(NamedTuple):
    """A column whose values are decoded beside the run, one by one, each from an item such as a path.

    `rank`: The number of dimensions of a value.
    """

    items: Sequence[Any]
    decode: Callable[[Any], Any]
    rank: int


class Fault(NamedTuple):
    """A row that cannot be used. `place`: its file, or its file and line. `before`: the rows of its batch before it."""

    place: str
    reason: str
    before: int = 0


class BadRows(Exception):
    """Rows whose values fit no input: the reason by row number in the batch, for at least one row."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        assert reasons, "feeds are made again without these rows, and would be made for ever without any"
        super().__init__(reasons)
        self.reasons = reasons


Column = Any  # a NumPy array whose first axis is the rows, a sequence of values, or Undecoded


@dataclass(frozen=True)
class RowBatch:
    """`index`: the columns that tell where a row comes from, such as file and row. `faults`: rows that are left out."""

    index: Mapping[str, Sequence[Any]]
    columns: Mapping[str, Column]
    faults: Sequence[Fault] = ()

    def __len__(self) -> int:
        return len(next(iter(self.index.values())))

    def part(self, start: int, stop: int | None = None) -> RowBatch:
        """Rows of this batch, with the faults that stand directly before one of them. Without `stop` the rows reach to
        the end, and the faults behind the last row belong to them."""
        faults = [fault._replace(before=fault.before - start) for fault in self.faults
                  if start <= fault.before and (stop is None or fault.before < stop)]
        return RowBatch({name: values[start:stop] for name, values in self.index.items()},
                        {name: part_of_column(column, start, stop) for name, column in self.columns.items()}, faults)


def part_of_column(column: Column, start: int, stop: int | None) -> Column:
    if isinstance(column, Undecoded):
        return column._replace(items=column.items[start:stop])
    return column[start:stop]


def keep_rows(column: Column, keep: Sequence[int]) -> Column:
    """The values of these rows alone."""
    if isinstance(column, Undecoded):
        return column._replace(items=[column.items[row] for row in keep])
    if hasattr(column, "dtype"):
        return column[keep]
    if isinstance(column, TextColumn):
        return column.take(keep)
    return [column[row] for row in keep]


def join_batches(batches: Sequence[RowBatch]) -> RowBatch:
    """The rows of all batches in turn, and their faults. Rows of a batch that lacks a column have None there."""
    if len(batches) == 1:
        return batches[0]
    names = dict.fromkeys(name for batch in batches for name in batch.columns)
    faults = []
    count = 0
    for batch in batches:
        faults += [fault._replace(before=fault.before + count) for fault in batch.faults]
        count += len(batch)
    index = {name: _join_columns([batch.index[name] for batch in batches]) for name in batches[0].index}
    return RowBatch(index, {name: _join_columns([column_or_none(batch, name) for batch in batches]) for name in names},
                    faults)


def column_or_none(batch: RowBatch, name: str) -> Column:
    """A column, of None where the batch lacks it: JSON's rows need not have all keys."""
    return batch.columns[name] if name in batch.columns else [None] * len(batch)


def _join_columns(columns: Sequence[Column]) -> Column:
    import numpy as np

    if isinstance(columns[0], Undecoded):
        return columns[0]._replace(items=[item for column in columns for item in column.items])
    if all(isinstance(column, TextColumn) for column in columns):
        return TextColumn.join(columns)
    if all(hasattr(column, "dtype") for column in columns):
        return np.concatenate(columns)
    return [value for column in columns for value in (column.tolist() if hasattr(column, "dtype") else column)]
