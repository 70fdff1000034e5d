"""The kernel that joins neighbours of the innermost dimension to n-grams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heald.api import Bind, Kernels

from ..rows import Array, check_splits, rows, splits, strings


def join_ngrams(b: Bind) -> Callable[..., Any]:
    width = b.attrs["width"]
    separator = b.attrs["string_separator"].encode("utf-8", "surrogateescape")
    shape = b.outputs[0].shape

    def grams(row: list[bytes]) -> list[bytes]:
        return [separator.join(row[i : i + width]) for i in range(len(row) - width + 1)]

    def run_ragged(values: Array, *row_splits: Array) -> tuple[Array, ...]:
        *outer, inner = row_splits
        for upper, lower in zip(outer, row_splits[1:], strict=True):
            check_splits(upper, len(lower) - 1)
        joined = [grams(row) for row in rows(values, inner)]
        return (strings([gram for row in joined for gram in row]), *(x.copy() for x in outer),
                splits(map(len, joined), inner.dtype))

    def run_dense(values: Array) -> Array:
        joined = [grams(row) for row in values.reshape(-1, values.shape[-1]).tolist()]
        size = shape[-1] if shape else None
        length = max(0, values.shape[-1] - width + 1) if size is None else size
        return strings([gram for row in joined for gram in row]).reshape(*values.shape[:-1], length)

    return run_ragged if b.attrs["RAGGED_RANK"] else run_dense


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("TFText>NgramsStringJoin", allocates=True)(join_ngrams)
