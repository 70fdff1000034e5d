"""Kernels that cut strings by bytes: each byte alone, or at offsets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels

from ..rows import Array, check_splits, splits, strings


def split_bytes(b: Bind) -> Callable[..., Any]:
    def run(texts: Array) -> tuple[Array, ...]:
        lengths = [len(text) for text in texts.flat]
        b.ask(9 * sum(lengths), "bytes and their offsets")
        content = np.frombuffer(b"".join(texts.ravel().tolist()), np.uint8).copy()
        row_splits = splits(lengths)
        starts = (np.arange(len(content)) - np.repeat(row_splits[:-1], lengths)).astype(np.int32)
        return content, row_splits, starts, starts + np.int32(1)

    return run


def split_by_offsets(_: Bind) -> Callable[..., Any]:
    def run(texts: Array, starts: Array, ends: Array, row_splits: Array) -> tuple[Array, Array]:
        if len(row_splits) != len(texts) + 1 or len(starts) != len(ends):
            raise InvalidArgument(f"{len(texts)} strings, {len(starts)} start offsets, {len(ends)} end offsets and "
                                  f"{len(row_splits)} row splits do not fit each other")
        check_splits(row_splits, len(starts))
        parts = []
        for text, (first, last) in zip(texts, pairwise(row_splits.tolist()), strict=True):
            for start, end in zip(starts[first:last].tolist(), ends[first:last].tolist(), strict=True):
                if not 0 <= start <= end <= len(text):
                    raise InvalidArgument(f"the offsets {start} and {end} are outside of a string of {len(text)} bytes")
                parts.append(text[start:end])
        return strings(parts), row_splits.copy()

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("TFText>ByteSplitWithOffsets", allocates=True)(split_bytes)
    kernels.kernel("TFText>ByteSplitByOffsets", allocates=True)(split_by_offsets)
