"""Kernels of Unicode's normal forms and of case folding, by Python's unicodedata.

Case folding is NFKC_Casefold: full case folding, compatibility decomposition, and no default-ignorable code points.
Ill-formed UTF-8 stays as it is, and no normal form reaches across it.

An offsets map has the edits of a string: spans of source and result. A span ends where the next character can neither
compose with the text in front of it nor be reordered with it, so its normal form is independent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, InvalidArgument, Kernels

from ..rows import Array, check_splits
from ..utf8 import characters, is_well_formed

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
VOWELS, TRAILS = range(0x1161, 0x1176), range(0x11A8, 0x11C3)  # of Hangul: they compose with a syllable in front
# The property Default_Ignorable_Code_Point, which Python lacks; unassigned code points included.
IGNORABLE = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
                       "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
                       "\U000e0000-\U000e0fff]")


class Edits(NamedTuple):
    """The offsets at which independent spans begin, in the source and in its normal form, with both ends.

    `changed` tells which spans differ.
    """

    source: tuple[int, ...]
    result: tuple[int, ...]
    changed: tuple[bool, ...]


def form_of(b: Bind) -> Any:
    form = b.attrs["normalization_form"].upper()
    if form not in FORMS:
        raise InvalidArgument(f"Offset not supported for this normalization form: {form}; known: {', '.join(FORMS)}")
    return form


def normalize(b: Bind) -> Callable[..., None]:
    return map_texts(partial(unicodedata.normalize, form_of(b)))


def fold_case(_: Bind) -> Callable[..., None]:
    return map_texts(fold_text)


def fold_text(text: str) -> str:
    """NFKC_Casefold. The second round serves characters whose decomposition has upper-case letters."""
    if text.isascii():
        return text.lower()
    text = IGNORABLE.sub("", text)
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return IGNORABLE.sub("", text)


def map_texts(function: Callable[[str], str]) -> Callable[..., None]:
    """The run function that applies `function` to the well-formed parts of each string."""

    def convert(text: bytes) -> bytes:
        return b"".join(function(part.decode()).encode() if is_valid else part for part, is_valid in parts_of(text))

    def run(texts: Array, out: Array) -> None:
        out.reshape(-1)[:] = [convert(text) for text in texts.flat]

    return run


def parts_of(text: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the longest well-formed parts, with True, and the ill-formed parts between them, with False."""
    try:
        text.decode()
    except UnicodeDecodeError:
        pass
    else:
        yield text, True
        return
    well_formed = b""
    for character in characters(text):
        if is_well_formed(character):
            well_formed += character
            continue
        yield well_formed, True
        yield character, False
        well_formed = b""
    yield well_formed, True


def normalize_with_map(b: Bind) -> Callable[..., None]:
    form = form_of(b)

    def run(texts: Array, out: Array, maps: Array) -> None:
        for index, text in enumerate(texts.flat):
            spans = [span for part, is_valid in parts_of(text) for span in (
                spans_of(part.decode(), form) if is_valid else [(part, part)])]
            out.reshape(-1)[index] = b"".join(result for _, result in spans)
            maps.reshape(-1)[index] = edits_of(spans)

    return run


def edits_of(spans: list[tuple[bytes, bytes]]) -> Edits:
    sources, results = ([0, *np.cumsum([len(span[side]) for span in spans]).tolist()] for side in (0, 1))
    return Edits(tuple(sources), tuple(results), tuple(source != result for source, result in spans))


def spans_of(text: str, form: Any) -> Iterator[tuple[bytes, bytes]]:
    """Yield independent spans of a text, each with its normal form. Marks are a span of their own behind a starter that
    decomposition leaves as it is."""
    starts = [i for i, character in enumerate(text)
              if not i or is_boundary(character, form) or (form.endswith("D") and is_inert(text[i - 1], form))]
    for start, end in pairwise([*starts, len(text)]):
        span = text[start:end]
        yield span.encode(), unicodedata.normalize(form, span).encode()


@cache
def is_boundary(character: str, form: Any) -> bool:
    """True where a character's normal form begins with a starter that composes with no text in front of it."""
    first = unicodedata.normalize(form.replace("C", "D"), character)[0]
    if unicodedata.combining(first):
        return False
    if not form.endswith("C"):
        return True
    return ord(first) not in VOWELS and ord(first) not in TRAILS and first not in composing_starters()


@cache
def is_inert(character: str, form: Any) -> bool:
    """True for a starter that is its own normal form."""
    return not unicodedata.combining(character) and unicodedata.normalize(form, character) == character


@cache
def composing_starters() -> frozenset[str]:
    """The starters that are the second part of a canonical composition."""
    pairs = (unicodedata.decomposition(chr(point)).split() for point in range(0x110000))
    seconds = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and not pair[0].startswith("<")}
    return frozenset(second for second in seconds if not unicodedata.combining(second))


def find_source_offsets(_: Bind) -> Callable[..., None]:
    def run(maps: Array, offsets: Array, row_splits: Array, out: Array) -> None:
        check_splits(row_splits, len(offsets))
        if len(row_splits) != maps.size + 1:
            raise InvalidArgument(f"{maps.size} offset maps have {len(row_splits) - 1} rows of offsets")
        for edits, (start, end) in zip(maps.flat, pairwise(row_splits.tolist()), strict=True):
            if not isinstance(edits, Edits):
                raise InvalidArgument(f"the variant is no offsets map, but a {type(edits).__name__}")
            out[start:end] = source_offsets(edits, offsets[start:end])

    return run


def source_offsets(edits: Edits, offsets: Array) -> Array:
    """The source offset of each offset of the result. Within a changed span it is the span's end."""
    source, result = np.array(edits.source), np.array(edits.result)
    if len(source) == 1:
        return np.zeros_like(offsets)
    span = np.clip(np.searchsorted(result, offsets, "right") - 1, 0, len(source) - 2)
    inside = np.clip(offsets, 0, result[-1]) - result[span]
    changed = np.array(edits.changed)[span]
    return np.where(changed & (inside > 0), source[span + 1], source[span] + inside)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("CaseFoldUTF8")(fold_case)
    kernels.kernel("NormalizeUTF8")(normalize)
    kernels.kernel("NormalizeUTF8WithOffsetsMap")(normalize_with_map)
    kernels.kernel("FindSourceOffsets")(find_source_offsets)
