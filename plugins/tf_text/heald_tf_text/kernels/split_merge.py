"""Kernels that merge characters into tokens by a label for each character: 0 begins a token, 1 goes on.

White space belongs to no token. A logit for each label may stand in place of the label: the larger one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from heald.api import Bind, InvalidArgument, Kernels

from ..rows import Array, check_splits, columns, integers, splits, strings
from ..utf8 import characters, is_well_formed, is_white_space

SPLIT = 0
Token = tuple[bytes, int, int]  # its text, start and end: white space between merged characters is not in the text


def split_by_labels(b: Bind) -> Callable[..., Any]:
    forced = b.attrs["force_split_at_break_character"]

    def run(texts: Array, labels: Array, row_splits: Array) -> tuple[Array, ...]:
        if len(row_splits) != len(texts) + 1:
            raise InvalidArgument(f"{len(texts)} strings have {len(texts) + 1} row splits, given {len(row_splits)}")
        check_splits(row_splits, len(labels))
        rows = [labels[start:end].tolist() for start, end in pairwise(row_splits.tolist())]
        return ragged_tokens([tokens_of(text, row, forced=forced) for text, row in zip(texts, rows, strict=True)])

    return run


def split_by_logits(_: Bind) -> Callable[..., Any]:
    def run(texts: Array, logits: Array, forced: Array) -> tuple[Array, ...]:
        if len(logits) != len(texts) or logits.shape[2] != 2:
            raise InvalidArgument(f"logits of {len(texts)} strings have the shape [{len(texts)},n,2], given "
                                  f"{list(logits.shape)}")
        rows = (logits[:, :, 0] <= logits[:, :, 1]).astype(int).tolist()
        return ragged_tokens([tokens_of(text, row, forced=bool(forced)) for text, row in zip(texts, rows, strict=True)])

    return run


def tokens_of(text: bytes, labels: Sequence[int], *, forced: bool) -> list[Token]:
    """The tokens of a text. With `forced` white space ends a token."""
    parts = characters(text)
    if not all(map(is_well_formed, parts)):
        raise InvalidArgument(f"Input string is not utf8 valid: {text!r}")
    if len(parts) > len(labels):
        raise InvalidArgument(f"Number of labels, {len(labels)}, insufficient for text; it has {len(parts)} characters")
    tokens: list[Token] = []
    at, is_behind_space = 0, False
    for part, label in zip(parts, labels, strict=False):
        start, at = at, at + len(part)
        is_space = is_white_space(part)
        if not is_space and (label == SPLIT or not tokens or (forced and is_behind_space)):
            tokens.append((part, start, at))
        elif not is_space:
            before, first, _ = tokens[-1]
            tokens[-1] = before + part, first, at
        is_behind_space = is_space
    return tokens


def ragged_tokens(rows: list[list[Token]]) -> tuple[Array, ...]:
    texts, starts, ends = columns(rows, 3)
    return strings(texts), splits(map(len, rows)), integers(starts), integers(ends)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SplitMergeTokenizeWithOffsets", allocates=True)(split_by_labels)
    kernels.kernel("TokenizerFromLogits", allocates=True)(split_by_logits)
