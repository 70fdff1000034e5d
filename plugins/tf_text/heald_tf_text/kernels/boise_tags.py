"""Kernels between spans and BOISE tags: (B)egin, (O)utside, (I)nside, (S)ingleton and (E)nd of a span of a type."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels

from ..rows import Array, rows, splits, strings
from ..rows import columns as flat_columns

OUTSIDE = b"O"
TAG = re.compile(rb"(?s)([BIES])-(.*)")


def tags_of_spans(_: Bind) -> Callable[..., Any]:
    def run(*operands: Array) -> None:
        *tensors, is_strict, out = operands
        columns = [list(rows(values, row)) for values, row in zip(tensors[:5], tensors[5:], strict=True)]
        _check_alike(columns[:2], columns[2:])
        out[:] = [tag for row in zip(*columns, strict=True) for tag in tags_of_row(*row, is_strict=bool(is_strict))]

    return run


def _check_alike(*groups: Sequence[list[list[Any]]]) -> None:
    """Raise InvalidArgument unless all tensors have equally many rows, and those of a group rows of equal lengths."""
    if len({len(column) for group in groups for column in group}) > 1:
        raise InvalidArgument("the inputs have different numbers of rows")
    if any(len({tuple(map(len, column)) for column in group}) > 1 for group in groups):
        raise InvalidArgument("offsets, ends and tags or types of the same tokens or spans have different row lengths")


def tags_of_row(
    starts: list[int], ends: list[int], span_starts: list[int], span_ends: list[int], kinds: list[bytes], *,
    is_strict: bool
) -> list[bytes]:
    """The tags of the tokens of a row. The last span that has a token decides."""
    tags = [OUTSIDE] * len(starts)
    for first, last, kind in zip(span_starts, span_ends, kinds, strict=True):
        for token, (start, end) in enumerate(zip(starts, ends, strict=True)):
            letter = letter_of(start, end, first, last, is_strict=is_strict)
            if letter is not None:
                tags[token] = letter + b"-" + kind
    return tags


def letter_of(start: int, end: int, first: int, last: int, *, is_strict: bool) -> bytes | None:
    """The letter of the token [start, end) in the span [first, last), or None outside.

    A strict span needs the whole token. A token that is larger on both sides is B in either mode.
    """
    if start < first <= last < end:
        return b"B"
    is_in = (first <= start and end <= last) if is_strict else (start < last and first < end)
    if not is_in:
        return None
    if (start, end) == (first, last):
        return b"S"
    if first > start or (first == start and last > end):
        return b"B"
    return b"E" if last <= end else b"I"


def spans_of_tags(_: Bind) -> Callable[..., Any]:
    def run(*operands: Array) -> tuple[Array, ...]:
        columns = [list(rows(values, row)) for values, row in zip(operands[:3], operands[3:], strict=True)]
        _check_alike(columns)
        spans = [spans_of_row(*row) for row in zip(*columns, strict=True)]
        starts, ends, kinds = flat_columns(spans, 3)
        return np.array(starts, np.int32), np.array(ends, np.int32), strings(kinds), splits(map(len, spans))

    return run


def spans_of_row(starts: list[int], ends: list[int], tags: list[bytes]) -> list[tuple[int, int, bytes]]:
    """The spans of a row. B and I open a span, unless one is open. E and S close it, at once if none is open.

    A span has the type of its last tag. A tag that begins with O, or the end of the row, closes a span behind the last
    token. All other texts are no tags and change nothing.
    """
    spans: list[tuple[int, int, bytes]] = []
    first: int | None = None
    kind = b""
    for token, tag in enumerate([*tags, OUTSIDE]):
        match = TAG.fullmatch(tag)
        if match is not None:
            first, kind = token if first is None else first, match[2]
        is_closed = match is not None and match[1] in b"ES"
        if first is not None and (is_closed or tag.startswith(OUTSIDE)):
            spans.append((starts[first], ends[token if is_closed else token - 1], kind))
            first = None
    return spans


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("TFText>OffsetsToBoiseTags")(tags_of_spans)
    kernels.kernel("TFText>BoiseTagsToOffsets", allocates=True)(spans_of_tags)
