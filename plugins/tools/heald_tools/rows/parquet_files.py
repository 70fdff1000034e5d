"""Parquet as rows and as a table, by pyarrow. Row groups are read and written in turn, so that memory stays flat.

A null of a column of floats is NaN; any other null is an empty cell. Times and decimals are texts. Lists
of floats of one length are an array with a further dimension.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from heald.errors import (
    DataLoss,
    HealdWarning,
    InvalidArgument,
    ResourceExhausted,
    describe_exception,
    of_system,
)

from .options import ReadOptions
from .plain_values import plain_values
from .results import Table
from .row_batch import Column, RowBatch
from .text_column import TextColumn

READ_ROWS = 8192  # rows that are decoded together
BUFFER = 1 << 20  # bytes of each column that are read together
GROUP_ROWS = 1 << 16  # rows of a row group that is written
GROUP_BYTES = 1 << 25  # of one that has fewer rows, since they are wide


def read_parquet(path: Path, options: ReadOptions) -> Iterator[RowBatch]:
    """Yield the rows of a file. Columns of structs and maps are left out with a warning.

    Raises DataLoss for a damaged file, InvalidArgument where two columns have one name.
    """
    from pyarrow import parquet

    with _telling_faults(path), parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False) as file:
        names = _usable_columns(path, file.schema_arrow)
        first = 1
        for table in file.iter_batches(max(options.size, READ_ROWS), columns=names):
            index: dict[str, Sequence[Any]] = {"file": [str(path)] * len(table),
                                               "row": range(first, first + len(table))}
            yield RowBatch(index, {name: _column(table.column(name)) for name in names})
            first += len(table)


@contextmanager
def _telling_faults(path: Path) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except MemoryError as error:
        raise ResourceExhausted(f"'{path}': no memory for its columns: {error}") from error
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:  # UnicodeError: of a column's name
        if isinstance(error, OSError) and error.errno is not None:
            raise of_system(error, path) from error
        raise DataLoss(f"'{path}' is no Parquet file that pyarrow can read: {describe_exception(error)}") from error


def _usable_columns(path: Path, schema: Any) -> list[str]:
    from pyarrow import types

    repeated = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if repeated is not None:
        raise InvalidArgument(f"'{path}': two columns are called '{repeated}'")
    nested = [field.name for field in schema if types.is_struct(field.type) or types.is_map(field.type)
              or types.is_union(field.type)]
    if nested:
        warnings.warn(f"'{path}': the columns {', '.join(nested)} have several values for each row; left out",
                      HealdWarning, stacklevel=2)
    return [name for name in schema.names if name not in nested]


def _column(array: Any) -> Column:
    import pyarrow
    from pyarrow import types

    array.validate(full=True)  # texts are UTF-8, and indices are inside
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_temporal(array.type) or types.is_decimal(array.type):
        array = array.cast(pyarrow.string())
    if types.is_large_string(array.type) or types.is_string(array.type):
        return array.to_pylist() if array.null_count else TextColumn(array.cast(pyarrow.string()))
    if types.is_floating(array.type) or (not array.null_count and _is_number(array.type)):
        return array.to_numpy(zero_copy_only=False)
    if not array.null_count and (types.is_list(array.type) or types.is_fixed_size_list(array.type)):
        return _array_of_lists(array)
    return array.to_pylist()


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_boolean(kind))


def _array_of_lists(lists: Any) -> Column:
    """An array of two dimensions where the lists are equally long and hold floats; else Python's lists."""
    import pyarrow.compute as pc
    from pyarrow import types

    values, lengths = lists.flatten(), pc.list_value_length(lists)
    length = lengths[0].as_py() if len(lists) else 0
    is_regular = len(values) == length * len(lists) and pc.all(pc.equal(lengths, length)).as_py()
    if not is_regular or values.null_count or not types.is_floating(values.type):
        return lists.to_pylist()
    return values.to_numpy(zero_copy_only=False).reshape(len(lists), length)


class ParquetWriter:
    """A column for each of the table's, with the type of its first row group. An array of each row is a list."""

    def __init__(self, out: BinaryIO) -> None:
        self.null_count = 0
        self._out = out
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._count = self._bytes = 0  # that wait

    def write(self, table: Table) -> None:
        import pyarrow

        self._waiting.append(pyarrow.table({name: _arrow_array(column) for name, column in table.items()}))
        self._count += len(self._waiting[-1])
        self._bytes += self._waiting[-1].nbytes
        if self._count >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        import pyarrow
        from pyarrow import parquet

        try:
            group = pyarrow.concat_tables(self._waiting, promote_options="permissive")
            if self._writer is None:
                self._writer = parquet.ParquetWriter(self._out, group.schema)
            self._writer.write_table(group.cast(self._writer.schema), len(group) or None)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError, ValueError) as error:
            raise InvalidArgument(f"a column of Parquet has one type: {describe_exception(error)}",
                                  hint="--output x.jsonl takes any value in any row") from error
        self._waiting, self._count, self._bytes = [], 0, 0

    def close(self) -> None:
        import pyarrow

        if self._writer is None and not self._waiting:
            self._waiting = [pyarrow.table({})]
        if self._waiting:
            self._write_group()
        self._writer.close()


def _arrow_array(column: Any) -> Any:
    import pyarrow

    if isinstance(column, TextColumn):
        return column.array
    if hasattr(column, "dtype") and column.dtype.kind in "iufb":
        return _list_array(column)
    values = plain_values(column)
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # of several types
        return pyarrow.array([None if value is None else str(value) for value in values])


def _list_array(array: Any) -> Any:
    """The rows of an array: numbers, or lists of lists for each further dimension."""
    import pyarrow

    rows = pyarrow.array(array.reshape(-1))
    for length in reversed(array.shape[1:]):
        if length == 0:
            return pyarrow.array(array.tolist())
        rows = pyarrow.FixedSizeListArray.from_arrays(rows, int(length))
    return rows
