"""Kernels that cut strings into parts, and that make n-grams of the parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from heald.api import Bind, Kernels, errors

from .strings import attribute_bytes

Parts = Callable[[bytes], Sequence[bytes]]
Run = Callable[..., Any]


def ragged_indices(counts: Any) -> Any:
    """[row, column] of each element of rows of these lengths, int64."""
    counts = np.asarray(counts, np.int64)
    starts = np.cumsum(counts) - counts
    rows = np.repeat(np.arange(len(counts)), counts)
    return np.stack([rows, np.arange(len(rows)) - starts[rows]], 1)


def sparse(rows: Sequence[Sequence[bytes]]) -> tuple[Any, Any, Any]:
    """Indices, values and dense shape of a matrix whose rows start with these strings."""
    counts = [len(row) for row in rows]
    values = np.array(list(chain.from_iterable(rows)), object)
    return ragged_indices(counts), values, np.array([len(rows), max(counts, default=0)], np.int64)


def split(b: Bind) -> Run:
    """StringSplit: splits at each byte among the delimiters, or between all bytes if there is no delimiter."""
    skip_empty = b.attrs["skip_empty"]

    def run(x: Any, delimiters: Any) -> Any:
        parts = _at_any_of(delimiters[()])
        rows = [parts(text) if text else [] for text in x]
        return sparse([list(filter(None, row)) for row in rows] if skip_empty else rows)

    return run


def _at_any_of(delimiters: bytes) -> Parts:
    if not delimiters:
        return lambda x: [x[i : i + 1] for i in range(len(x))]
    if len(delimiters) == 1:
        return lambda x: x.split(delimiters)
    return re.compile(b"[" + re.escape(delimiters) + b"]").split


def split_v2(b: Bind) -> Run:
    max_splits = max(-1, b.attrs["maxsplit"])
    return lambda x, separator: sparse([_split_once(text, separator[()], max_splits) for text in x])


def _split_once(text: bytes, separator: bytes, max_splits: int) -> list[bytes]:
    """Splits by Python's rule with two exceptions. With 0 splits the text stays whole. The rest after the last allowed
    split at white space is a part even if it is empty."""
    if max_splits == 0:
        return [text]
    parts = text.split(separator or None, max_splits)
    return [*parts, b""] if not separator and len(parts) == max_splits else parts


def ngrams(b: Bind) -> Run:
    """The n-grams of each row, one width after the other. Padding is at most one less than the width."""
    attrs = b.attrs
    separator, left, right = (attribute_bytes(b, name) for name in ("separator", "left_pad", "right_pad"))
    widths, pad, keep_short = attrs["ngram_widths"], attrs["pad_width"], attrs["preserve_short_sequences"]

    def grams(tokens: list[bytes], width: int, pads: int) -> Iterator[bytes]:
        padded = [left] * pads + tokens + [right] * pads
        return (separator.join(padded[i : i + width]) for i in range(len(padded) - width + 1))

    def row(tokens: list[bytes]) -> list[bytes]:
        ngrams_of_row = [g for w in widths for g in grams(tokens, w, w - 1 if pad < 0 else min(pad, w - 1))]
        if ngrams_of_row or not keep_short or not tokens:
            return ngrams_of_row
        if pad < 0:
            raise errors.InvalidArgument(f"pad_width must not be negative if short sequences are kept, given {pad}")
        return [separator.join([left] * pad + tokens + [right] * pad)]

    def run(data: Any, splits: Any) -> tuple[Any, Any]:
        _check_splits(splits, len(data))
        if not len(data) or not len(splits):
            return np.empty(0, object), np.zeros_like(splits)
        tokens = data.tolist()
        rows = [row(tokens[first:last]) for first, last in pairwise(splits)]
        ends = np.cumsum([0, *map(len, rows)])
        return np.array(list(chain.from_iterable(rows)), object), ends.astype(splits.dtype)

    return run


def _check_splits(splits: Any, length: int) -> None:
    if not len(splits):
        return
    if splits[0] != 0 or splits[-1] != length or (np.diff(splits) < 0).any():
        raise errors.InvalidArgument(f"data_splits must ascend from 0 to {length}, the size of data")


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {"StringNGrams": ngrams, "StringSplit": split, "StringSplitV2": split_v2}.items():
        kernels.kernel(op, allocates=True)(bind)
