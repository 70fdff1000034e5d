"""The kernel that cuts a text into sentence fragments, by its punctuation.

A fragment ends behind a run of terminals and the closing brackets that follow. A terminal is an emoticon, an acronym
such as `U.S.`, an ellipsis or a terminal character. White space in front of a fragment belongs to none.

The characters and emoticons stand in data/sentence_marks.json. They were found by asking tensorflow-text 2.21.1: every
code point, and every text of 2 or 3 ASCII characters, or of 4 punctuation characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from heald.api import Bind, Kernels

from ..rows import Array, columns, integers
from ..utf8 import characters, is_white_space

MARKS = Path(__file__).parents[1] / "data" / "sentence_marks.json"
TERMINAL, MULTIPLE, CLOSED = 1, 2, 4  # bits of a fragment's properties
ACRONYM = re.compile(rb"(?:[A-Z]\.){2,}")
ELLIPSES = (b"...", "\u2026".encode())
Fragment = tuple[int, int, int, int]  # start, end, properties, start of the terminal or -1


class Marks(NamedTuple):
    terminals: frozenset[bytes]
    brackets: frozenset[bytes]
    emoticons: re.Pattern[bytes]


class Terminal(NamedTuple):
    """The run of terminals at a place. `start` is that of its first character, or of its last emoticon or ellipsis. One
    may stand within another: `....`, `D:)`."""

    start: int
    end: int
    properties: int


@cache
def sentence_marks() -> Marks:
    marks = json.loads(MARKS.read_text("utf-8"))
    longest_first = sorted(marks["emoticons"], key=len, reverse=True)
    return Marks(frozenset(mark.encode() for mark in marks["terminals"]),
                 frozenset(mark.encode() for mark in marks["brackets"]),
                 re.compile(b"|".join(re.escape(emoticon.encode()) for emoticon in longest_first)))


def cut_fragments(_: Bind) -> Callable[..., Any]:
    def run(texts: Array) -> tuple[Array, ...]:
        rows = [list(fragments_of(text)) for text in texts]
        return (*(integers(column) for column in columns(rows, 4)), integers([len(row) for row in rows]))

    return run


def fragments_of(text: bytes) -> Iterator[Fragment]:
    """Yield the fragments of a text."""
    offsets = [0]
    parts = characters(text)
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    start, index = -1, 0
    while index < len(parts):
        if start < 0 and is_white_space(parts[index]):
            index += 1
            continue
        start = offsets[index] if start < 0 else start
        terminal = terminal_at(text, offsets[index])
        if terminal is None:
            index += 1
            continue
        yield start, terminal.end, terminal.properties, terminal.start
        index = offsets.index(terminal.end, index)
        start = -1
    if start >= 0:
        yield start, len(text), 0, -1


def terminal_at(text: bytes, at: int) -> Terminal | None:
    """The run of terminals that starts at an offset, or None."""
    acronym = ACRONYM.match(text, at)
    emoticon = sentence_marks().emoticons.match(text, at)
    if acronym is not None and emoticon is None:
        start, end, properties = at, acronym.end(), TERMINAL | MULTIPLE
    else:
        start = end = at
        properties = 0
    while (token := terminal_token(text, end)) is not None:
        next_end, is_plain = token
        if not is_plain:
            start = end
        elif properties:
            properties |= MULTIPLE
        properties |= TERMINAL
        end = next_end
    for inner in range(start + 1, end):
        token = terminal_token(text, inner)
        start = inner if token is not None and not token[1] else start
    return closed_terminal(text, Terminal(start, end, properties)) if properties else None


def terminal_token(text: bytes, at: int) -> tuple[int, bool] | None:
    """The end of the terminal at an offset, and True for a plain character. None without a terminal."""
    emoticon = sentence_marks().emoticons.match(text, at)
    if emoticon is not None:
        return emoticon.end(), False
    for ellipsis in ELLIPSES:
        if text.startswith(ellipsis, at):
            return at + len(ellipsis), False
    character = character_at(text, at)
    return (at + len(character), True) if character in sentence_marks().terminals else None


def character_at(text: bytes, at: int) -> bytes:
    return next(iter(characters(text[at : at + 4])), b"")


def closed_terminal(text: bytes, terminal: Terminal) -> Terminal:
    """The terminal with the closing brackets that follow. Emoticons and ellipses may stand between them."""
    start, end, properties = terminal
    while (character := character_at(text, end)) in sentence_marks().brackets:
        end += len(character)
        properties |= CLOSED
        while (token := terminal_token(text, end)) is not None and not token[1]:
            end = token[0]
    return Terminal(start, end, properties)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SentenceFragmentsV2", allocates=True)(cut_fragments)
