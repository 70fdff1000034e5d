"""Kernels of the fast SentencePiece tokenizer, whose models are flatbuffers: an encoder's and a decoder's.

The encoder normalises the text, and then finds the pieces with the largest sum of scores (Viterbi). A character without
a piece costs the unknown penalty, and neighbours without a piece are one unknown token. The normaliser replaces the
longest prefix that its trie has by a text in a pool. Texts of the pool end with a zero byte. TensorFlow
Text ends the process for strings as output, so they are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels

from ..double_array import DoubleArray
from ..flat_model import root_table
from ..model_input import model_of
from ..rows import Array, check_splits, splits, strings
from ..utf8 import characters

SPACE = "\u2581".encode()  # the mark of white space in vocabulary


class EncoderModel(NamedTuple):
    """The fields of an encoder. `offset` is added to the id of each piece."""

    start: int
    end: int
    unknown: int
    penalty: float
    offset: int
    vocabulary: DoubleArray
    scores: tuple[float, ...]
    strips_spaces: bool
    adds_prefix: bool
    marks_spaces: bool
    prefixes: DoubleArray | None
    replacements: bytes


class DecoderModel(NamedTuple):
    offset: int
    vocabulary: tuple[bytes, ...]
    removes_prefix: bool


def parse_encoder(model: Array) -> EncoderModel:
    table = root_table(model)
    vocabulary, prefixes = table.table(6), table.table(11)
    if vocabulary is None:
        raise InvalidArgument("the model is damaged: it has no vocabulary")
    return EncoderModel(
        table.number(1, "<i"), table.number(2, "<i"), table.number(3, "<i"), table.number(4, "<f", 0.0),
        table.number(5, "<i"), DoubleArray(vocabulary.vector(0)), tuple(table.vector(7, "<f4").tolist()), table.flag(8),
        table.flag(9), table.flag(10), DoubleArray(prefixes.vector(0)) if prefixes is not None else None,
        table.vector(12, "<u1").tobytes())


def parse_decoder(model: Array) -> DecoderModel:
    table = root_table(model)
    return DecoderModel(table.number(1, "<i"), tuple(table.texts(2)), table.flag(5))


def tokenize(b: Bind) -> Callable[..., Any]:
    model_from = model_of(b, 0, parse_encoder)
    splits_type = b.attrs["Tsplits"].numpy

    def run(model_bytes: Array, texts: Array, _size: Array, _alpha: Array, *marks: Array) -> tuple[Array, Array]:
        model = model_from(model_bytes)
        rows = [add_marks(encode_text(normalize_text(text, model), model), model, *map(bool, marks)) for text in texts]
        return np.array([number for row in rows for number in row], np.int32), splits(map(len, rows), splits_type)

    return run


def add_marks(ids: list[int], model: EncoderModel, add_bos: bool, add_eos: bool, reverse: bool) -> list[int]:
    """The ids between the marks of start and end, reversed as a ids_and_marks."""
    ids_and_marks = [*([model.start] if add_bos else []), *ids, *([model.end] if add_eos else [])]
    return ids_and_marks[::-1] if reverse else ids_and_marks


def normalize_text(text: bytes, model: EncoderModel) -> bytes:
    text = b"".join(replace_prefixes(text, model)) if model.prefixes is not None else text
    if model.strips_spaces:
        text = b" ".join(word for word in text.split(b" ") if word)
    if model.adds_prefix and text:
        text = b" " + text
    return text.replace(b" ", SPACE) if model.marks_spaces else text


def replace_prefixes(text: bytes, model: EncoderModel) -> list[bytes]:
    """The parts of a text with the longest prefixes replaced."""
    assert model.prefixes is not None
    parts: list[bytes] = []
    at = 0
    while at < len(text):
        longest = model.prefixes.longest(text, at)
        if longest is None:
            part = characters(text[at : at + 4])[0]
            parts.append(part)
            at += len(part)
            continue
        at, start = longest
        parts.append(model.replacements[start:].partition(b"\0")[0])
    return parts


def encode_text(text: bytes, model: EncoderModel) -> list[int]:
    """The ids of a normalised text with the best total score."""
    best: list[tuple[float, int, int] | None] = [None] * (len(text) + 1)  # score, start and id of the last token
    best[0] = 0.0, 0, 0
    at = 0
    for character in characters(text):
        here = best[at]
        if here is not None:
            ends = [(end, number, model.scores[number]) for end, number in model.vocabulary.prefixes(text, at)
                    if number < len(model.scores)]
            for end, number, score in [*ends, (at + len(character), model.unknown, model.penalty)]:
                total, there = here[0] + score, best[end]
                if there is None or total > there[0]:
                    best[end] = total, at, number
        at += len(character)
    return _backwards(best, model)


def _backwards(best: list[tuple[float, int, int] | None], model: EncoderModel) -> list[int]:
    """The ids from the last token to the first, in their order. Neighbours without a piece are one unknown token."""
    numbers: list[int] = []
    end = len(best) - 1
    while end:
        last = best[end]
        assert last is not None  # the unknown token reaches each end of a character
        _, end, number = last
        if not (numbers and number == model.unknown == numbers[-1]):
            numbers.append(number)
    return [number + model.offset for number in reversed(numbers)]


def detokenize(b: Bind) -> Callable[..., Any]:
    model_from = model_of(b, 0, parse_decoder)

    def run(model_bytes: Array, ids: Array, row_splits: Array) -> Array:
        model = model_from(model_bytes)
        check_splits(row_splits, len(ids))
        rows = [ids[start:end].tolist() for start, end in pairwise(row_splits.tolist())]
        return strings([decode_row(row, model) for row in rows])

    return run


def decode_row(ids: list[int], model: DecoderModel) -> bytes:
    """The text of a row of ids. A space of the first piece goes where the encoder adds one."""
    for number in ids:
        if not 0 <= number - model.offset < len(model.vocabulary):
            raise InvalidArgument(f"id {number} is none of the vocabulary's {len(model.vocabulary)}")
    vocabulary = [model.vocabulary[number - model.offset] for number in ids]
    if model.removes_prefix and vocabulary:
        vocabulary[0] = vocabulary[0].removeprefix(b" ")
    return b"".join(vocabulary)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("TFText>FastSentencepieceTokenize", allocates=True, dtypes={"out_type": "int32"})(tokenize)
    kernels.kernel("TFText>FastSentencepieceDetokenize", allocates=True)(detokenize)
