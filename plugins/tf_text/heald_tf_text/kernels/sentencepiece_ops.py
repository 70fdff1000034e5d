"""Kernels of SentencePiece's models, by their own library.

A model is the attribute of the node that makes the handle. It is checked once, loaded once for the session, and shared
by all ops with the handle. The library's answer to an encoding is a SentencePieceText message, whose tokens have texts,
ids and offsets in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels, Library, dtypes, wire

from ..rows import Array, integers, rows, splits, strings
from ..sentencepiece_model import check_model

SENTENCEPIECE = Library("SentencePiece", "sentencepiece", "sentencepiece")
PIECES, NBESTS = 2, 1  # fields of SentencePieceText and NBestSentencePieceText
TEXT, ID, BEGIN, END = 1, 2, 4, 5  # fields of a token


class Piece(NamedTuple):
    text: bytes
    id: int
    begin: int
    end: int


class Options(NamedTuple):
    """The scalar inputs of an encoding."""

    nbest_size: int
    alpha: float
    add_bos: bool
    add_eos: bool
    reverse: bool


class SentencePieceModel:
    """A loaded model: what a handle refers to."""

    def __init__(self, model: bytes) -> None:
        check_model(model)
        import sentencepiece

        self.processor: Any = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.LoadFromSerializedProto(model)
        except (RuntimeError, ValueError, OSError) as error:
            raise InvalidArgument(f"SentencePiece cannot read the model: {error}") from None
        self.size: int = self.processor.get_piece_size()
        self.marks = tuple(self._mark(number) for number in (self.processor.bos_id(), self.processor.eos_id()))

    def _mark(self, number: int) -> Piece | None:
        """The piece that begins or ends a text, or None where the model has none."""
        return Piece(self.text(number), number, 0, 0) if number >= 0 else None

    def text(self, number: int) -> bytes:
        if not 0 <= number < self.size:
            raise InvalidArgument(f"id {number} is none of the vocabulary's {self.size}")
        text: str = self.processor.id_to_piece(number)
        return text.encode()

    def encodings(self, text: bytes, options: Options, *, returns_nbest: bool) -> Iterator[list[Piece]]:
        """Yield the encoding of a text, or its best encodings. A size of 0 or 1 asks for the best one, other sizes for
        a random one."""
        kind = "serialized_proto"
        if returns_nbest:
            message = self._call("nbest_encode", text, nbest_size=options.nbest_size, out_type=kind)
            best = [list(_pieces(message, start, stop))
                    for number, _, start, stop in wire.fields(message, 0, len(message)) if number == NBESTS]
        elif options.nbest_size in (0, 1):
            message = self._call("encode", text, out_type=kind)
            best = [list(_pieces(message, 0, len(message)))]
        else:
            message = self._call("encode", text, out_type=kind, enable_sampling=True, nbest_size=options.nbest_size,
                                          alpha=options.alpha)
            best = [list(_pieces(message, 0, len(message)))]
        return (self._add_marks(tokens, options) for tokens in best)

    def _call(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method of the library. Raises InvalidArgument where it refuses, as for samples of some models."""
        try:
            return getattr(self.processor, method)(*args, **options)
        except (RuntimeError, ValueError, IndexError, OSError) as error:
            raise InvalidArgument(f"SentencePiece refuses to {method.replace('_', ' ')}: {error}") from None

    def _add_marks(self, tokens: list[Piece], options: Options) -> list[Piece]:
        """The pieces with those that begin and end a text, reversed as a pieces_and_marks."""
        first, last = self.marks
        tokens_and_marks = [*([first] if options.add_bos and first else []), *tokens,
                 *([last] if options.add_eos and last else [])]
        return tokens_and_marks[::-1] if options.reverse else tokens_and_marks

    def decode_row(self, row: list[Any]) -> bytes:
        """The text of a row of ids or pieces."""
        for number in row:
            if isinstance(number, int):
                self.text(number)
        tokens = [token.decode("utf-8", "replace") if isinstance(token, bytes) else token for token in row]
        text: str = self._call("decode", tokens) if tokens else ""
        return text.encode()


def _pieces(message: bytes, start: int, stop: int) -> Iterator[Piece]:
    for number, _, first, last in wire.fields(message, start, stop):
        if number == PIECES:
            text, numbers = b"", {ID: 0, BEGIN: 0, END: 0}
            for field, _, at, end in wire.fields(message, first, last):
                if field == TEXT:
                    text = message[at:end]
                elif field in numbers:
                    numbers[field] = wire.integer(message, at, end)
            yield Piece(text, numbers[ID], numbers[BEGIN], numbers[END])


def make_handle(b: Bind) -> Callable[..., None]:
    model = b.attrs["model"].encode("utf-8", "surrogateescape")
    loaded = b.resource("SentencePiece model", lambda: SentencePieceModel(model))
    return lambda out: out.fill(loaded)


def _model(handle: Array) -> SentencePieceModel:
    model = handle[()]
    if not isinstance(model, SentencePieceModel):
        raise InvalidArgument(f"the handle is of a {type(model).__name__}, not of a model of SentencePiece")
    return model


def tokenize(b: Bind) -> Callable[..., Any]:
    encode = tokenize_with_offsets(b)
    return lambda *inputs: encode(*inputs)[:2]


def tokenize_with_offsets(b: Bind) -> Callable[..., Any]:
    are_ids, splits_type = b.attrs["out_type"] is dtypes.int32, b.attrs["Tsplits"].numpy
    returns_nbest = b.attrs["return_nbest"]

    def run(handle: Array, texts: Array, nbest_size: Array, alpha: Array, *marks: Array) -> tuple[Array, ...]:
        model = _model(handle)
        encodings = [row for text, options in zip(texts, _options(len(texts), nbest_size, alpha, marks), strict=True)
                     for row in model.encodings(text, options, returns_nbest=returns_nbest)]
        tokens = [token for row in encodings for token in row]
        values = (np.array([token.id for token in tokens], np.int32) if are_ids
                  else strings([token.text for token in tokens]))
        return (values, splits(map(len, encodings), splits_type), integers([token.begin for token in tokens]),
                integers([token.end for token in tokens]))

    return run


def _options(count: int, nbest_size: Array, alpha: Array, marks: tuple[Array, ...]) -> Iterator[Options]:
    """Yield the options of each text. Size and alpha are scalars, or vectors with an element for each text."""
    for name, values in (("nbest_size", nbest_size), ("alpha", alpha)):
        if values.shape not in ((), (count,)):
            raise InvalidArgument(f"{name} must be a scalar or have an element for each of {count} texts, given shape "
                                  f"{list(values.shape)}")
    sizes, alphas = (np.broadcast_to(values, (count,)).tolist() for values in (nbest_size, alpha))
    return (Options(size, number, *map(bool, marks)) for size, number in zip(sizes, alphas, strict=True))


def detokenize(_: Bind) -> Callable[..., Any]:
    def run(handle: Array, values: Array, row_splits: Array, add_bos: Array, add_eos: Array, reverse: Array) -> Array:
        model = _model(handle)
        return strings([model.decode_row(row[::-1] if reverse else row) for row in rows(values, row_splits)])

    return run


def vocabulary_size(_: Bind) -> Callable[..., None]:
    return lambda handle, out: out.fill(_model(handle).size)


def texts_of_ids(_: Bind) -> Callable[..., None]:
    def run(handle: Array, ids: Array, out: Array) -> None:
        out[:] = [_model(handle).text(number) for number in ids.ravel().tolist()]

    return run


def ids_of_texts(_: Bind) -> Callable[..., None]:
    def run(handle: Array, texts: Array, out: Array) -> None:
        processor = _model(handle).processor
        out[:] = [processor.piece_to_id(text.decode("utf-8", "replace")) for text in texts.flat]

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "SentencepieceDetokenizeOp": detokenize, "SentencepieceTokenizeOp": tokenize,
        "SentencepieceTokenizeWithOffsetsOp": tokenize_with_offsets,
    }.items():
        kernels.kernel(op, allocates=True, library=SENTENCEPIECE)(bind)
    for op, bind in {
        "SentencepieceIdToStringOp": texts_of_ids, "SentencepieceOp": make_handle,
        "SentencepieceStringToIdOp": ids_of_texts, "SentencepieceVocabSizeOp": vocabulary_size,
    }.items():
        kernels.kernel(op, library=SENTENCEPIECE)(bind)
