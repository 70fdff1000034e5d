"""Rows that are read together, by column. Readers yield them, and all else of this room takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Undecoded(NamedTuple):
    """A column whose values are decoded beside the run, one by one, each from an item such as a path.

    `rank`: The number of dimensions of a value.
    """

    items: Sequence[Any]
    decode: Callable[[Any], Any]
    rank: int


class Fault(NamedTuple):
    """A row that cannot be used. `place`: its file, or its file and line."""

    place: str
    reason: str


Column = Any  # a NumPy array whose first axis is the rows, a list of values, or Undecoded


@dataclass(frozen=True)
class RowBatch:
    """`index`: the columns that tell where a row comes from, such as file and row. `faults`: rows that are left out."""

    index: Mapping[str, Sequence[Any]]
    columns: Mapping[str, Column]
    faults: Sequence[Fault] = ()

    def __len__(self) -> int:
        return len(next(iter(self.index.values())))

    def part(self, start: int, stop: int) -> RowBatch:
        """Rows of this batch, without its faults."""
        return RowBatch({name: values[start:stop] for name, values in self.index.items()},
                        {name: part_of_column(column, start, stop) for name, column in self.columns.items()})


def part_of_column(column: Column, start: int, stop: int) -> Column:
    if isinstance(column, Undecoded):
        return column._replace(items=column.items[start:stop])
    return column[start:stop]


def keep_rows(column: Column, keep: Sequence[int]) -> Column:
    """The values of these rows alone."""
    if isinstance(column, Undecoded):
        return column._replace(items=[column.items[row] for row in keep])
    if hasattr(column, "dtype"):
        return column[keep]
    return [column[row] for row in keep]


def join_batches(batches: Sequence[RowBatch]) -> RowBatch:
    """The rows of all batches in turn, and their faults. They have the same columns."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    return RowBatch({name: _join_columns([batch.index[name] for batch in batches]) for name in first.index},
                    {name: _join_columns([batch.columns[name] for batch in batches]) for name in first.columns},
                    [fault for batch in batches for fault in batch.faults])


def _join_columns(columns: Sequence[Column]) -> Column:
    import numpy as np

    if isinstance(columns[0], Undecoded):
        return columns[0]._replace(items=[item for column in columns for item in column.items])
    if all(hasattr(column, "dtype") for column in columns):
        return np.concatenate(columns)
    return [value for column in columns for value in column]
