"""Kernels of the fast wordpiece tokenizer: the longest prefix of a word in a trie, again and again, and the way back.

A model is a flatbuffer. Its trie has the words from the root, and the suffixes below `suffix_root`. Failure links make
TensorFlow Text's walk linear in the word; they change no result, and this walk ignores them. A value encodes a token:
the id in bits 8 to 29, its length less one in bits 0 to 7.

An end-to-end model takes whole texts: words end at white space, and punctuation and Chinese characters stand alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from heald.api import Bind, InvalidArgument, Kernels

from ..double_array import DoubleArray
from ..flat_model import root_table
from ..model_input import detokenizer, model_of
from ..rows import Array, columns, integers, splits, strings
from ..utf8 import ILL_FORMED, WHITE_SPACE, characters, code_point

ASCII_PUNCTUATION = (range(33, 48), range(58, 65), range(91, 97), range(123, 127))
CHINESE = (range(0x4E00, 0xA000), range(0x3400, 0x4DC0), range(0x20000, 0x2A6E0), range(0x2A700, 0x2CEB0),
           range(0xF900, 0xFB00), range(0x2F800, 0x2FA20))
Token = tuple[bytes, int, int, int]  # its text, its id, its start and end in the input


class WordpieceModel(NamedTuple):
    """The fields of a model. Texts are bytes."""

    trie: DoubleArray
    suffix_root: int
    most_bytes: int
    suffix: bytes
    unknown: bytes
    unknown_id: int
    suffix_tokens: tuple[int, ...]  # the values of the tokens of the suffix indicator itself
    is_end_to_end: bool
    detokenizes: bool
    words: tuple[bytes, ...]
    are_suffixes: tuple[bool, ...]


def parse_model(model: Array) -> WordpieceModel:
    table = root_table(model)
    return WordpieceModel(
        DoubleArray(table.vector(0)), table.number(3), table.number(4), table.text(5), table.text(6), table.number(7),
        tuple(table.vector(8).tolist()), table.flag(10), table.flag(11), tuple(table.texts(12)),
        tuple(table.vector(13, "<u1").astype(bool).tolist()))


def tokenize(b: Bind) -> Callable[..., Any]:
    model_from = model_of(b, 1, parse_model)

    def run(texts: Array, model_bytes: Array) -> tuple[Array, ...]:
        model = model_from(model_bytes)
        row_tokens = [list(tokens_of(text, model)) for text in texts.flat]
        words, ids, starts, ends = columns(row_tokens, 4)
        return strings(words), integers(ids), splits(map(len, row_tokens)), integers(starts), integers(ends)

    return run


def tokens_of(text: bytes, model: WordpieceModel) -> Iterator[Token]:
    spans = words_of(text) if model.is_end_to_end else [(0, len(text))]
    for start, end in spans:
        if start < end:
            yield from pieces_of(text, start, end, model)


def words_of(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the span of each word of a text."""
    at = start = 0
    for part in characters(text):
        point, before = code_point(part), at
        at += len(part)
        alone = stands_alone(point)
        if alone or point in WHITE_SPACE:
            yield start, before
            if alone:
                yield before, at
            start = at
    yield start, at


@cache
def stands_alone(point: int) -> bool:
    """True for punctuation and Chinese characters."""
    if any(point in block for block in (*ASCII_PUNCTUATION, *CHINESE)):
        return True
    return point != ILL_FORMED and unicodedata.category(chr(point)).startswith("P")


def pieces_of(text: bytes, start: int, end: int, model: WordpieceModel) -> list[Token]:
    """The tokens of the word at [start, end), or the unknown token."""
    unknown = [(model.unknown, model.unknown_id, start, end)]
    word = text[start:end]
    if len(word) > model.most_bytes:
        return unknown
    if word == model.suffix and not model.is_end_to_end:
        return [_token(word, 0, len(word), start, value, model) for value in model.suffix_tokens] or unknown
    tokens: list[Token] = []
    at = 0
    while at < len(word):
        longest = model.trie.longest(word, at, model.suffix_root if at else 0)
        if longest is None:
            return unknown
        last, value = longest
        tokens.append(_token(word, at, last, start, value, model))
        at = last
    return tokens


def _token(word: bytes, at: int, last: int, start: int, value: int, model: WordpieceModel) -> Token:
    """The token of a value, for the bytes [at, last) of a word. Punctuation that the vocabulary lacks is unknown."""
    number = value >> 8 & 0x3FFFFF
    text = model.unknown if number == model.unknown_id else (model.suffix if at else b"") + word[at:last]
    return text, number, start + at, start + last


def text_of(ids: list[int], model: WordpieceModel) -> bytes:
    """The words of the ids with a space between them. A suffix goes on with the word in front of it."""
    text = b""
    for position, number in enumerate(ids):
        if not 0 <= number < min(len(model.words), len(model.are_suffixes)):
            raise InvalidArgument(f"id {number} is none of the vocabulary's {len(model.words)}")
        is_suffix = model.are_suffixes[number]
        if not position:
            text = (model.suffix if is_suffix else b"") + model.words[number]
        else:
            text += (b"" if is_suffix else b" ") + model.words[number]
    return text


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("FastWordpieceTokenizeWithOffsets", allocates=True)(tokenize)
    kernels.kernel("TFText>FastWordpieceDetokenize", allocates=True)(detokenizer(parse_model, text_of))
