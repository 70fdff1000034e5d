"""Kernels that cut text at white space: of strings with offsets in bytes, and of code points.

Version 2 has a quirk that recorded answers show: a token in front of a white space of several bytes ends one byte
before that space ends. Its offset counts from the end of the space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from heald.api import Bind, Kernels

from ..rows import Array, check_splits, columns, integers, splits, strings
from ..utf8 import WHITE_SPACE, characters, code_point

Tokens = list[list[int]]  # the indices of the code points of each token


def tokenize_strings(_: Bind) -> Callable[..., Any]:
    def run(texts: Array, config: Array) -> tuple[Array, ...]:
        is_space = members_of_bitmap(config.item())
        spans = [list(spans_of_bytes(text, is_space)) for text in texts.flat]
        tokens = [text[start:end] for text, row in zip(texts.flat, spans, strict=True) for start, end in row]
        starts, ends = columns(spans, 2)
        return strings(tokens), splits(map(len, spans)), integers(starts, np.int32), integers(ends, np.int32)

    return run


def members_of_bitmap(bitmap: bytes) -> Callable[[int], bool]:
    """The set whose element n is bit n % 8 of byte n // 8."""
    count = 8 * len(bitmap)
    return lambda point: 0 <= point < count and bool(bitmap[point >> 3] >> (point & 7) & 1)


def spans_of_bytes(text: bytes, is_space: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    at, start = 0, -1
    for part in characters(text):
        at += len(part)
        if is_space(code_point(part)):
            if start >= 0:
                yield start, at - 1
            start = -1
        elif start < 0:
            start = at - len(part)
    if start >= 0:
        yield start, at


def tokenize_code_points(b: Bind) -> Callable[..., Any]:
    return tokenizer_of_code_points(b, words_of)


def words_of(points: list[int]) -> Tokens:
    words: Tokens = []
    is_open = False
    for at, point in enumerate(points):
        is_space = point in WHITE_SPACE
        if not is_space and not is_open:
            words.append([])
        if not is_space:
            words[-1].append(at)
        is_open = not is_space
    return words


def tokenizer_of_code_points(b: Bind, tokens_of: Callable[[list[int]], Tokens]) -> Callable[..., Any]:
    """The run function that takes tokens from each row of code points. No token is empty."""
    splits_type = b.attrs["Tsplits"].numpy

    def run(values: Array, row_splits: Array) -> tuple[Array, ...]:
        check_splits(row_splits, len(values))
        texts = [values[start:end] for start, end in pairwise(row_splits.tolist())]
        rows = [tokens_of(text.tolist()) for text in texts]
        tokens = [text[indices] for text, row in zip(texts, rows, strict=True) for indices in row]
        starts, limits = [token[0] for row in rows for token in row], [token[-1] + 1 for row in rows for token in row]
        return (np.concatenate([np.empty(0, values.dtype), *tokens]), splits(map(len, tokens), splits_type),
                integers(starts), integers(limits), splits(map(len, rows), splits_type))

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("TFText>WhitespaceTokenizeWithOffsetsV2", allocates=True)(tokenize_strings)
    kernels.kernel("WhitespaceTokenizeWithOffsets", allocates=True)(tokenize_code_points)
