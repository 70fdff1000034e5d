"""Rows: vectors of strings and integers that kernels return, and the checks of row splits that a stranger gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from heald.api import InvalidArgument

Array = np.ndarray[Any, Any]


def strings(texts: Sequence[bytes]) -> Array:
    out = np.empty(len(texts), object)
    out[:] = texts
    return out


def integers(numbers: Sequence[int], dtype: Any = np.int64) -> Array:
    return np.array(numbers, dtype)


def splits(counts: Iterable[int], dtype: Any = np.int64) -> Array:
    """The row splits of rows with these lengths."""
    return np.concatenate(([0], np.cumsum([*counts]))).astype(dtype)


def columns(rows_of_tokens: Iterable[Iterable[Sequence[Any]]], count: int) -> list[list[Any]]:
    """The parts of all tokens, one list a part: of texts, of starts, of ends."""
    tokens = [token for row in rows_of_tokens for token in row]
    return [[token[part] for token in tokens] for part in range(count)]


def check_splits(row_splits: Array, length: int, name: str = "row splits") -> None:
    """Raise InvalidArgument unless the splits ascend from 0 to `length`."""
    if not len(row_splits) or row_splits[0] != 0 or row_splits[-1] != length or (np.diff(row_splits) < 0).any():
        raise InvalidArgument(f"{name} must ascend from 0 to {length}, the number of values")


def rows(values: Array, row_splits: Array, name: str = "row splits") -> Iterator[list[Any]]:
    """Yield each row as a list. Raises InvalidArgument for splits that do not fit, before the first row."""
    check_splits(row_splits, len(values), name)
    elements = values.tolist()
    return (elements[start:end] for start, end in pairwise(row_splits.tolist()))
