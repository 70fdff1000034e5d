"""The columns that feed each input, and the arrays that they become.

An input takes the column of its name; letters of either case are equal. The only input of a model takes the only column
of a file, or all columns that are numbers side by side where the input has as many columns. `--map input=column,...`
says it otherwise.

A model takes a batch where the input has one dimension more than a row's value. Else it takes one row at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from heald.api import TensorMetadata, dtypes
from heald.errors import HealdError, InvalidArgument, describe_exception, did_you_mean

from .arrays import VALUE
from .cell_values import Target, array_of_column
from .row_batch import BadRows, Column, RowBatch, Undecoded, column_or_none, keep_rows
from .text_column import TextColumn

Array = Any


class Binding(NamedTuple):
    """Columns that feed an input; several stand side by side in its last dimension. `batched`: All rows at once."""

    input: str
    meta: TensorMetadata
    columns: tuple[str, ...]
    batched: bool


def bind_columns(
    inputs: Mapping[str, TensorMetadata], sample: RowBatch, maps: Mapping[str, Sequence[str]]
) -> list[Binding]:
    """Choose the columns of each input.

    Raises InvalidArgument where an input has no column, or too many.
    """
    bindings = []
    for name, meta in inputs.items():
        columns = _columns_of_input(name, meta, sample, maps, only=len(inputs) == 1)
        bindings.append(_binding(name, meta, columns, sample))
    return bindings


def _columns_of_input(
    name: str, meta: TensorMetadata, sample: RowBatch, maps: Mapping[str, Sequence[str]], *, only: bool
) -> tuple[str, ...]:
    names = list(sample.columns)
    if name in maps:
        for column in maps[name]:
            if column not in sample.columns:
                raise InvalidArgument(f"--map {name}={column}: there is no column '{column}'",
                                      hint=did_you_mean(column, names) or f"the columns: {', '.join(names)}")
        return tuple(maps[name])
    by_letters = {_letters(column): column for column in names}
    if _letters(name) in by_letters:
        return (by_letters[_letters(name)],)
    if only and (len(names) == 1 or (meta.dtype is dtypes.string and names[0] == VALUE)):
        return (names[0],)
    if only and meta.rank == 2 and meta.dtype is not dtypes.string:
        numbers = [column for column in names if _holds_numbers(sample.columns[column])]
        width = meta.shape[1] if meta.shape is not None else None
        if numbers and width in (None, len(numbers)):
            return tuple(numbers)
    raise InvalidArgument(f"no column is for input '{name}' {meta}; the columns: {', '.join(names)}",
                          hint=f"--map {name}=COLUMN,...")


def _letters(name: str) -> str:
    return name.removesuffix(":0").strip().lower()


def _holds_numbers(column: Column) -> bool:
    """True for a column with numbers in more than half of its cells: the others are faults of their rows."""
    if isinstance(column, Undecoded):
        return False
    if hasattr(column, "dtype"):
        return bool(column.ndim == 1 and column.dtype.kind in "iufb")
    return 2 * sum(_is_number(value) for value in column) > len(column)


def _is_number(value: Any) -> bool:
    if isinstance(value, int | float):
        return True
    try:
        return isinstance(value, str) and (not value or float(value) is not None)
    except ValueError:
        return False


def _binding(name: str, meta: TensorMetadata, columns: tuple[str, ...], sample: RowBatch) -> Binding:
    if len(columns) > 1:
        if meta.shape is not None and len(meta.shape) not in (1, 2):
            raise InvalidArgument(f"input '{name}' is {meta}: {len(columns)} columns do not fill it")
        return Binding(name, meta, columns, meta.shape is None or len(meta.shape) == 2)
    column = sample.columns[columns[0]]
    if meta.shape is None:
        return Binding(name, meta, columns, batched=True)
    rank = _rank_of_value(column)
    return Binding(name, meta, columns, batched=len(meta.shape) > (0 if rank is None else rank))


def _rank_of_value(column: Column) -> int | None:
    """The number of dimensions of one value; None where the column is empty."""
    import numpy as np

    if isinstance(column, Undecoded):
        return column.rank
    if hasattr(column, "dtype"):
        return int(column.ndim) - 1
    return np.ndim(column[0]) if len(column) else None


def feed_of(binding: Binding, batch: RowBatch) -> Array:
    """The array of an input for these rows; a list of arrays where the model takes one row at a time.

    Raises BadRows for rows whose values do not fit.
    """
    parts = [_values(binding, column_or_none(batch, column)) for column in binding.columns]
    if not binding.batched:
        return [_side_by_side([part[row] for part in parts]) for row in range(len(parts[0]))]
    array = _side_by_side(parts)
    shape = binding.meta.shape
    if shape is None or array.ndim == len(shape):
        return array
    row_shape = shape[1:]
    if array.ndim == 1 and prod(size or 1 for size in row_shape) == 1:
        return array.reshape(len(array), *(1 for _ in row_shape))
    if array.ndim < len(shape):  # dimensions of length 1 that the rows' values lack, behind theirs
        return array.reshape(array.shape + (1,) * (len(shape) - array.ndim))
    raise InvalidArgument(f"input '{binding.input}' is {binding.meta}, and a batch of rows has {array.ndim} dimensions")


def _side_by_side(parts: Sequence[Any]) -> Array:
    import numpy as np

    return parts[0] if len(parts) == 1 else np.stack(parts, axis=-1)


def _values(binding: Binding, column: Column) -> Array:
    """The values of all rows as one array of the input's type, or a list where they differ in shape."""
    dtype = binding.meta.dtype
    if isinstance(column, Undecoded):
        return _decode_items(binding, column)
    if hasattr(column, "dtype"):
        is_exact = column.ndim > 1 or column.dtype.kind not in "iub" or dtype.numpy.kind != "f"
        return column if is_exact else column.astype(dtype.numpy)  # as the texts of integers are
    if isinstance(column, TextColumn):
        array = column.encode() if dtype is dtypes.string else column.numbers(dtype.numpy)
        if array is not None:
            return array
    return array_of_column(list(column), _target_of(binding), batched=binding.batched)


def _target_of(binding: Binding) -> Target:
    """The input, with the shape of one row's value in one of its columns."""
    shape = binding.meta.shape
    if shape is not None:
        shape = () if len(binding.columns) > 1 else shape[1:] if binding.batched else shape
    return Target(binding.input, binding.meta.dtype, shape)


def _decode_items(binding: Binding, column: Undecoded) -> Array:
    """The decoded values of all items. Raises BadRows with the items that cannot be decoded."""
    import numpy as np

    values, reasons = [], {}
    for row, item in enumerate(column.items):
        try:
            values.append(column.decode(item))
        except HealdError as error:
            reasons[row] = error.message
        except Exception as error:  # decoders are libraries of others  # noqa: BLE001
            reasons[row] = describe_exception(error)
    if reasons:
        raise BadRows(reasons)
    if not binding.batched:
        return values
    shapes = [np.shape(value) for value in values]
    other = next((row for row, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is not None:
        pair = " and ".join(f"{list(shapes[row])} of '{column.items[row]}'" for row in (0, other))
        raise InvalidArgument(f"rows of input '{binding.input}' differ in shape: {pair}",
                              hint="--batch 1 runs each alone; --resize makes pictures of one size")
    if values and isinstance(values[0], bytes):
        texts = np.empty(len(values), object)
        texts[:] = values
        return texts
    return np.stack(values)


def without_rows(batch: RowBatch, bad: Mapping[int, str]) -> RowBatch:
    """The batch without these rows."""
    keep = [row for row in range(len(batch)) if row not in bad]
    return RowBatch({name: [values[row] for row in keep] for name, values in batch.index.items()},
                    {name: keep_rows(column, keep) for name, column in batch.columns.items()}, batch.faults)
