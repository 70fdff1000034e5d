"""The kernel of the legacy wordpiece tokenizer: the longest prefix that a lookup table has, again and again.

A table belongs to another plugin. Its handle refers to an object with `key`, `value` and `find(keys, default)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from heald.api import Bind, DType, InvalidArgument, Kernels, dtypes

from ..rows import Array, columns, integers, splits, strings
from ..utf8 import characters

MISSING = -1  # the id of a word that the table lacks
Piece = tuple[bytes, int, int]


@runtime_checkable
class LookupTable(Protocol):
    """A lookup table: the object that a handle on the CPU refers to."""

    key: DType
    value: DType

    def find(self, keys: Array, default: Array) -> Array:
        """The values of the keys, `default` for a missing key."""


class Rules(NamedTuple):
    """The attributes of a node. Texts are bytes."""

    suffix: bytes
    most_bytes: int
    most_chars: int
    unknown: bytes | None
    splits_unknown: bool


def tokenize(b: Bind) -> Callable[..., Any]:
    attrs = b.attrs
    unknown = attrs["unknown_token"].encode("utf-8", "surrogateescape") if attrs["use_unknown_token"] else None
    rules = Rules(attrs["suffix_indicator"].encode("utf-8", "surrogateescape"), attrs["max_bytes_per_word"],
                  attrs["max_chars_per_token"], unknown, attrs["split_unknown_characters"])
    are_splits = attrs["output_row_partition_type"] == "row_splits"

    def run(words: Array, handle: Array) -> tuple[Array, ...]:
        table = _vocabulary(handle)
        answers: dict[bytes, bool] = {}
        rows = [pieces_of(word, rules, membership_test(table, answers)) for word in words]
        texts, starts, ends = columns(rows, 3)
        counts = [len(row) for row in rows]
        partition = splits(counts) if are_splits else integers(counts)
        return strings(texts), partition, integers(starts), integers(ends)

    return run


def _vocabulary(handle: Array) -> LookupTable:
    table = handle[()]
    if not isinstance(table, LookupTable):
        raise InvalidArgument(f"a lookup table is expected here, given a {type(table).__name__}")
    if table.key is not dtypes.string or table.value is not dtypes.int64:
        raise InvalidArgument(f"the vocabulary maps string to int64, given {table.key} to {table.value}")
    return table


def membership_test(table: LookupTable, answers: dict[bytes, bool]) -> Callable[[bytes], bool]:
    """True for a word of the table, by `answers` at the second time."""
    default = np.array(MISSING, np.int64)

    def is_known(word: bytes) -> bool:
        if word not in answers:
            answers[word] = int(table.find(strings([word]), default)[0]) != MISSING
        return answers[word]

    return is_known


def pieces_of(word: bytes, rules: Rules, is_known: Callable[[bytes], bool]) -> list[Piece]:
    """The pieces of a word. A word with an unknown rest is one unknown piece, unless unknown characters are split."""
    if len(word) > rules.most_bytes:
        text = word if rules.unknown is None else rules.unknown
        return [(text, 0, len(text))]
    parts = characters(word)
    tokens: list[Piece] = []
    first = start = 0
    while first < len(parts):
        mark = rules.suffix if start else b""
        last = _longest(parts, first, mark, rules.most_chars, is_known)
        if not last and not rules.splits_unknown:
            return [(word if rules.unknown is None else rules.unknown, 0, len(word))]
        text = b"".join(parts[first : last or first + 1])
        end = start + len(text)
        tokens.append((mark + (text if last or rules.unknown is None else rules.unknown), start, end))
        first, start = last or first + 1, end
    return tokens


def _longest(parts: list[bytes], first: int, mark: bytes, most_chars: int, is_known: Callable[[bytes], bool]) -> int:
    """The end of the longest answers piece that starts at character `first`, or 0."""
    last = min(len(parts), first + most_chars) if most_chars > 0 else len(parts)
    return next((end for end in range(last, first, -1) if is_known(mark + b"".join(parts[first:end]))), 0)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("WordpieceTokenizeWithOffsets", allocates=True)(tokenize)
