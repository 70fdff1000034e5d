"""Kernels of the phrase tokenizer: the longest known sequence of words in a trie, again and again, and the way back.

Words stand between white space. A phrase of the vocabulary is its words with a space between them. A word that begins
no phrase is the unknown token. A model that drops phrases at random is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from heald.api import Bind, InvalidArgument, Kernels, errors

from ..double_array import DoubleArray
from ..flat_model import root_table
from ..model_input import detokenizer, model_of
from ..rows import Array, columns, integers, splits, strings
from .whitespace import members_of_bitmap, spans_of_bytes

END_PUNCTUATION = (b".", b",", b"!", b"?")


class PhraseModel(NamedTuple):
    """The fields of a model. `drop_percentage` is the probability to pass over a phrase."""

    trie: DoubleArray
    drop_percentage: int
    unknown: bytes
    unknown_id: int
    detokenizes: bool
    phrases: tuple[bytes, ...]
    spaces: bytes
    splits_punctuation: bool


def parse_model(model: Array) -> PhraseModel:
    table = root_table(model)
    trie = table.table(5)
    if trie is None:
        raise InvalidArgument("the model is damaged: it has no trie")
    return PhraseModel(DoubleArray(trie.vector(0)), table.number(0, "<i"), table.text(1), table.number(2, "<i"),
                       table.flag(3), tuple(table.texts(4)), table.text(6), table.flag(7))


def tokenize(b: Bind) -> Callable[..., Any]:
    model_from = model_of(b, 1, parse_model)

    def run(texts: Array, model_bytes: Array) -> tuple[Array, ...]:
        model = model_from(model_bytes)
        if model.drop_percentage:
            raise errors.Unimplemented("a phrase model with a probability chooses tokens at random")
        row_tokens = [list(tokens_of(text, model)) for text in texts.flat]
        phrases, ids = columns(row_tokens, 2)
        return strings(phrases), integers(ids), splits(map(len, row_tokens))

    return run


def tokens_of(text: bytes, model: PhraseModel) -> Iterator[tuple[bytes, int]]:
    """Yield each token with its id."""
    spans = spans_of_bytes(text, members_of_bitmap(model.spaces))
    words = [word for start, end in spans for word in (
        split_punctuation(text[start:end]) if model.splits_punctuation else [text[start:end]])]
    at = 0
    while at < len(words):
        count, token, number = _longest(words, at, model)
        yield token, number
        at += count


def _longest(words: list[bytes], at: int, model: PhraseModel) -> tuple[int, bytes, int]:
    """The number of words, the text and the id of the longest phrase at a word, or the unknown token."""
    remaining_text = b" ".join(words[at:])
    best = 1, model.unknown, model.unknown_id
    for end, value in model.trie.prefixes(remaining_text):
        if end == len(remaining_text) or remaining_text[end : end + 1] == b" ":
            best = remaining_text.count(b" ", 0, end) + 1, remaining_text[:end], value
    return best


def split_punctuation(word: bytes) -> list[bytes]:
    """A word, and the punctuation at its end apart. Punctuation alone has the empty word in front of it."""
    return [word[:-1], word[-1:]] if word.endswith(END_PUNCTUATION) else [word]


def text_of(ids: list[int], model: PhraseModel) -> bytes:
    return b" ".join(_phrase(number, model) for number in ids)


def _phrase(number: int, model: PhraseModel) -> bytes:
    if not 0 <= number < len(model.phrases):
        raise InvalidArgument(f"id {number} is none of the vocabulary's {len(model.phrases)}")
    return model.phrases[number]


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("PhraseTokenize", allocates=True)(tokenize)
    kernels.kernel("TFText>PhraseDetokenize", allocates=True)(detokenizer(parse_model, text_of))
