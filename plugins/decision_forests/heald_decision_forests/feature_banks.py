"""Features: the banks of an inference op as columns for ydf.

Values have TF-DF's meaning. NaN is a missing number or boolean, and -1 a missing category; other numbers outside of a
vocabulary mean the word 0, "out of vocabulary". A set that begins with -1 is missing. A boolean is true
from 0.5 on for TF-DF's general engine, and unless it is 0 for the fast ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from heald.api import errors

from .columns import BANKS, BOOLEAN, CATEGORICAL, CATEGORICAL_SET, DISCRETIZED, LARGEST_BIN_COUNT, NUMERICAL, Column
from .ops import MATRICES, SETS

Array = np.ndarray[Any, Any]
Fill = Callable[..., None]  # adds a column of these values to a dataset of ydf's
MISSING = -1
_ZERO = np.zeros(1, np.int64)
_HALF = 0.5  # the least true boolean of the general engine


class Banks(NamedTuple):
    """The inputs of an inference op, in its order."""

    numerical: Array
    boolean: Array
    categorical: Array
    set_values: Array
    set_splits: Array
    example_splits: Array


class FeatureColumns:
    """The features of a model, and their places in the banks."""

    def __init__(
        self, features: Mapping[int, Column], words: Mapping[int, Collection[int]], *, is_fast: bool
    ) -> None:
        """`words`: By set column the words of ydf's dictionary. `is_fast`: True for the answers of a fast engine."""
        self._by_bank: list[list[Fill]] = [[] for _ in range(4)]
        self._vocabulary_sizes = np.array([column.size for column in features.values() if column.kind == CATEGORICAL])
        is_true = operator.ne if is_fast else operator.ge
        for column in features.values():
            bank = self._by_bank[BANKS[column.kind]]
            if column.kind == BOOLEAN:
                bank.append(_boolean_fill(column, lambda values: is_true(values, 0 if is_fast else _HALF)))
            elif column.kind == CATEGORICAL_SET:
                bank.append(_set_fill(column, words[column.number]))
            else:
                bank.append(_FILLS[column.kind](column))

    def example_count(self, banks: Banks) -> int:
        """Return the number of examples. Raises InvalidArgument for banks of other sizes than the model's."""
        counts = []
        for name, bank, features in zip(MATRICES, banks[:3], self._by_bank[:3], strict=True):
            if features or bank.shape[1]:
                counts.append(bank.shape[0])
            if bank.shape[1] != len(features):
                raise errors.InvalidArgument(f"{name} has {bank.shape[1]} columns; the model has {len(features)} such "
                                             "features")
        if self._by_bank[3]:
            counts.append(self._set_example_count(banks))
        if len(set(counts)) > 1:
            raise errors.InvalidArgument(f"the banks have {' and '.join(map(str, counts))} examples; one number is "
                                         "needed")
        return counts[0] if counts else 0

    def fill(self, dataset: Any, banks: Banks) -> None:
        """Add all columns to a dataset of ydf's, for one example at least."""
        is_word = (banks.categorical >= MISSING) & (banks.categorical < self._vocabulary_sizes)
        categories = np.where(is_word, banks.categorical, np.int32(0))
        for matrix, features in zip((*banks[:2], categories), self._by_bank[:3], strict=True):
            for values, fill_column in zip(np.ascontiguousarray(matrix.T), features, strict=True):
                fill_column(dataset, values)
        width = len(self._by_bank[3])
        for number, fill_column in enumerate(self._by_bank[3]):
            starts, ends = banks.set_splits[number:-1:width], banks.set_splits[number + 1::width]
            fill_column(dataset, *_select_sets(banks.set_values, starts, ends, is_all=width == 1))

    def _set_example_count(self, banks: Banks) -> int:
        """Return the number of examples of the sets. Raises InvalidArgument for splits that are none."""
        _, set_splits_name, example_splits_name = SETS
        set_count = _check_splits(banks.set_splits, len(banks.set_values), set_splits_name)
        count = _check_splits(banks.example_splits, set_count, example_splits_name)
        width = len(self._by_bank[3])
        if not (np.diff(banks.example_splits) == width).all():
            raise errors.InvalidArgument(f"an example has another number of sets than the {width} of the model")
        return count


def _check_splits(splits: Array, end: int, name: str) -> int:
    """Return the number of rows that the splits make."""
    if not splits.size or splits[0] != 0 or splits[-1] != end or (np.diff(splits) < 0).any():
        raise errors.InvalidArgument(f"{name} must increase from 0 to {end}")
    return splits.size - 1


def _select_sets(values: Array, starts: Array, ends: Array, *, is_all: bool) -> tuple[Array, Array]:
    """Return the values of some sets, one behind the other, and the number of values of each."""
    sizes = ends - starts
    if is_all:
        return values, sizes
    shifts = starts - (np.cumsum(sizes) - sizes)  # from a value's new place to its old one
    return values[np.repeat(shifts, sizes) + np.arange(sizes.sum())], sizes


def _numerical_fill(column: Column) -> Fill:
    name, index = str(column.number), column.number
    return lambda dataset, values: dataset.PopulateColumnNumericalNPFloat32(
        name, values, ydf_dtype=None, column_idx=index)


def _discretized_fill(column: Column) -> Fill:
    name, index = str(column.number), column.number
    return lambda dataset, values: dataset.PopulateColumnDiscretizedNumericalNPFloat32(
        name, values, ydf_dtype=None, maximum_num_bins=LARGEST_BIN_COUNT, column_idx=index)


def _boolean_fill(column: Column, is_true: Callable[[Array], Array]) -> Fill:
    fill_numerical = _numerical_fill(column)

    def fill(dataset: Any, values: Array) -> None:
        truths = is_true(values).astype(np.float32)
        fill_numerical(dataset, np.where(np.isnan(values), values, truths))

    return fill


def _categorical_fill(column: Column) -> Fill:
    name, index, size = str(column.number), column.number, column.size
    return lambda dataset, values: dataset.PopulateColumnCategoricalIntegerizedNPInt32(
        name, values, ydf_dtype=None, max_val=size - 1, most_frequent_value=0, num_missing=0, column_idx=index)


def _set_fill(column: Column, words: Collection[int]) -> Fill:
    name, index, size = str(column.number), column.number, column.size
    texts = np.array([str(word).encode() for word in range(size + 1)])
    is_asked = np.zeros(size + 1, bool)
    is_asked[list(words)] = True

    def fill(dataset: Any, values: Array, sizes: Array) -> None:
        ends = np.cumsum(sizes)
        indices = np.where((values >= 0) & (values < size), values, np.int32(0))
        is_part = is_asked[indices]
        if values.size and values.min() <= MISSING:
            _mark_missing(values, sizes, ends - sizes, indices, is_part)
        new_ends = np.concatenate((_ZERO, np.cumsum(is_part)))[ends].tolist()
        words = texts[indices[is_part]]
        sets = np.fromiter(map(words.__getitem__, map(slice, [0, *new_ends], new_ends)), object, len(sizes))
        dataset.PopulateColumnCategoricalSetNPBytes(name, sets, ydf_dtype=None, column_idx=index)

    def _mark_missing(values: Array, sizes: Array, starts: Array, indices: Array, is_part: Array) -> None:
        """Give each missing set the word that stands for it, and no other."""
        is_missing = np.zeros(len(sizes), bool)
        is_missing[sizes > 0] = values[starts[sizes > 0]] == MISSING
        is_part &= ~np.repeat(is_missing, sizes)
        indices[starts[is_missing]] = size
        is_part[starts[is_missing]] = True

    return fill


_FILLS = {NUMERICAL: _numerical_fill, DISCRETIZED: _discretized_fill, CATEGORICAL: _categorical_fill}
