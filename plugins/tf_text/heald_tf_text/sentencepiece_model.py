"""Models of SentencePiece as a stranger's bytes: the checks that their library omits.

The library is C++. It reads the normaliser's trie without comparing positions with its size, and aborts the process for
some fields that contradict each other. So a model is checked here, field by field, before the library sees it. The
messages are those of sentencepiece_model.proto.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from heald.api import InvalidArgument, errors, wire

PIECES, TRAINER, NORMALIZER, DENORMALIZER = 1, 2, 3, 5  # fields of ModelProto
PIECE_TEXT, PIECE_SCORE, PIECE_TYPE = 1, 2, 3
UNKNOWN, CONTROL, BYTE = 2, 3, 6  # types of pieces; the type NORMAL is the default
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
CHARSMAP = 2  # the field of a normaliser's precompiled map
LARGEST_PIECE_BYTES = 1 << 12


def check_model(model: bytes) -> None:
    """Raise InvalidArgument for bytes that are no model, or a model that the library cannot read safely."""
    try:
        _check(model)
    except errors.DataLoss as error:
        raise InvalidArgument(f"the model of SentencePiece is damaged: {error.message}") from None


def _check(model: bytes) -> None:
    texts: list[bytes] = []
    kinds: list[int] = []
    for number, form, start, stop in wire.fields(model, 0, len(model)):
        if number in (PIECES, TRAINER, NORMALIZER, DENORMALIZER):
            wire.expect(form, wire.BYTES, start, "a message of the model")
        if number == PIECES:
            text, kind = _piece(model, start, stop)
            texts.append(text)
            kinds.append(kind)
        elif number == TRAINER:
            _check_trainer(model, start, stop)
        elif number in (NORMALIZER, DENORMALIZER):
            _check_normalizer(model, start, stop)
    _check_vocabulary(texts, kinds)


def _piece(model: bytes, start: int, stop: int) -> tuple[bytes, int]:
    text, kind = b"", 1
    for number, form, first, last in wire.fields(model, start, stop):
        if number == PIECE_TEXT:
            wire.expect(form, wire.BYTES, first, "the text of a piece")
            text = model[first:last]
        elif number == PIECE_SCORE:
            wire.expect(form, wire.FIXED32, first, "the score of a piece")
            if not np.isfinite(wire.float32(model, first)):
                raise InvalidArgument(f"the model of SentencePiece has the score {wire.float32(model, first)}")
        elif number == PIECE_TYPE:
            wire.expect(form, wire.VARINT, first, "the type of a piece")
            kind = wire.integer(model, first, last)
    return text, kind


def _check_trainer(model: bytes, start: int, stop: int) -> None:
    for number, form, first, last in wire.fields(model, start, stop):
        if number == 3:
            wire.expect(form, wire.VARINT, first, "the type of the model")
            if wire.integer(model, first, last) not in MODEL_TYPES:
                raise InvalidArgument(f"the model of SentencePiece has the type {wire.integer(model, first, last)}; "
                                      f"known: {', '.join(MODEL_TYPES.values())}")


def _check_vocabulary(texts: list[bytes], kinds: list[int]) -> None:
    if kinds.count(UNKNOWN) != 1:
        raise InvalidArgument(f"the model of SentencePiece has {kinds.count(UNKNOWN)} unknown pieces, not "
                              "one")
    if len(set(texts)) < len(texts):
        raise InvalidArgument("the model of SentencePiece has a piece twice")
    for text, kind in zip(texts, kinds, strict=True):
        if not text or b"\0" in text or len(text) > LARGEST_PIECE_BYTES:
            raise InvalidArgument(f"{text[:40]!r} is no piece of SentencePiece: it is empty, too long, or has a zero "
                                  "byte")
        if kind not in range(1, 7):
            raise InvalidArgument(f"a piece of SentencePiece has the type {kind}, which is unknown")
        if kind == BYTE and not _is_byte_piece(text):
            raise InvalidArgument(f"{text[:40]!r} is no byte piece of SentencePiece")
        _check_text(text)


def _is_byte_piece(text: bytes) -> bool:
    return len(text) == 6 and text.startswith(b"<0x") and text.endswith(b">") and text[3:5].isalnum()


def _check_text(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise InvalidArgument(f"the piece {text[:40]!r} of SentencePiece is not UTF-8") from None


def _check_normalizer(model: bytes, start: int, stop: int) -> None:
    for number, form, first, last in wire.fields(model, start, stop):
        if number == CHARSMAP:
            wire.expect(form, wire.BYTES, first, "the map of characters")
            check_charsmap(model[first:last])


def check_charsmap(charsmap: bytes) -> None:
    """Raise InvalidArgument unless each walk through the map's trie stays in it. The map is the size of the trie, the
    trie, and the texts that its values point into."""
    if not charsmap:
        return
    size = int.from_bytes(charsmap[:4], "little")
    texts = charsmap[4 + size :]
    if len(charsmap) < 4 or size % 1024 or not 1024 <= size < len(charsmap) - 4 or texts[-1] != 0:
        raise InvalidArgument("the map of characters of a SentencePiece model is damaged: its sizes do not fit")
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.int64)
    if not is_closed(units, len(texts)):
        raise InvalidArgument("the map of characters of a SentencePiece model is damaged: it refers beyond its end")


def is_closed(units: np.ndarray[Any, Any], limit: int) -> bool:
    """True if no child of a trie's units is beyond them, and no value is `limit` or more.

    A walk meets a unit as a node, or as the value at the label 0 of a node with a leaf bit. A unit with the highest bit
    equals no label, so it is never a node.
    """
    places = np.arange(len(units))
    nodes = places[(units >> 31 & 1 == 0) | (places == 0)]
    bases = nodes ^ (units[nodes] >> 10 << ((units[nodes] & 0x200) >> 6))
    if (bases | 0xFF >= len(units)).any():
        return False
    leaves = bases[units[nodes] >> 8 & 1 == 1]
    return bool((units[leaves] & 0x7FFFFFFF < limit).all())
