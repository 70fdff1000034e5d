"""Edits of texts by their tokens: protobuf's text form, TOML, the files of a dist-info folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from . import raw
from .raw import EDGES, LARGEST_MUTANT_BYTES, Words

_TOKEN = re.compile(rb"""[A-Za-z_][\w.\-]*|-?[0-9][\w.+\-]*|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\s+|.""", re.DOTALL)
_NUMBERS = (*(str(n).encode() for n in EDGES), b"1e400", b"-1e400", b"inf", b"-inf", b"nan", b"0x10", b"010", b"1.5",
            b"1f", b"0b1", b"1_000", b"1" * 400, b"0x" + b"f" * 40)
_STRANGE = (b"", b"\0", b"\\", b'"', b"'", b'"""', b"{", b"}", b"[", b"]", b"<", b">", b":", b",", b";", b"=", b"#",
            b"-", b"\n", b"\r", b"\xff", b"\xef\xbb\xbf", b'"\\x41\\101\\u0041\\U00010000"', b'"\\777"', b'"\\ud800"',
            b"true", b"false", b"1979-05-27T07:32:00Z", b"[[", b"]]", b"\xc3\xa9", b"\xe2\x80\xa8")
_BRACKETS = ((b"{", b"}"), (b"[", b"]"), (b"<", b">"), (b"(", b")"))


def edit(rng: Random, data: bytes, other: bytes, words: Words) -> bytes:
    """One edit of tokens: mostly another token of the same kind, so that the text still parses."""
    tokens = _TOKEN.findall(data)
    if not tokens:
        return raw.edit(rng, data, other, words)
    choice = rng.random()
    if choice < 0.6:
        changed = _alike(rng, tokens, other, words)
    elif choice < 0.85:
        changed = _lines(rng, data, other)
    else:
        changed = b"".join(rng.choice(_EDITS)(rng, tokens, rng.randrange(len(tokens)), other, words))
    return changed if len(changed) <= LARGEST_MUTANT_BYTES else data


def _alike(rng: Random, tokens: list[bytes], other: bytes, words: Words) -> bytes:
    """Another number, string or name in the place of a token; keys mostly stay, since parsers know them all."""
    places = [at for at, token in enumerate(tokens)
              if _kind(token) and (not _is_key(tokens, at) or rng.random() < 0.02)]
    if not places:
        return b"".join(tokens)
    at = rng.choice(places)
    old, kind = tokens[at], _kind(tokens[at])
    theirs = _TOKEN.findall(other) if rng.random() < 0.5 else tokens
    alike = [token for i, token in enumerate(theirs) if _kind(token) == kind and not _is_key(theirs, i)]
    new = rng.choice(alike) if alike else old
    if kind == "number" and rng.random() < 0.6:
        new = rng.choice(_NUMBERS)
    elif kind == "string" and rng.random() < 0.6:
        inner = rng.choice(words) if words and rng.random() < 0.6 else raw.edit(rng, old[1:-1], other, words)
        new = old[:1] + inner + old[-1:]
    elif kind == "name" and words and rng.random() < 0.2:
        new = rng.choice(words)
    return b"".join([*tokens[:at], new, *tokens[at + 1 :]])


def _is_key(tokens: list[bytes], at: int) -> bool:
    """True for a name with a sign behind it that keys have."""
    return _kind(tokens[at]) == "name" and b"".join(tokens[at + 1 : at + 3]).lstrip()[:1] in (b":", b"{", b"=")


def _kind(token: bytes) -> str:
    """The class of a token; empty for spaces, brackets and other signs."""
    first = token[:1]
    if first.isdigit() or (first == b"-" and len(token) > 1):
        return "number"
    if first in (b'"', b"'"):
        return "string" if len(token) > 1 else ""
    return "name" if first.isalpha() or first == b"_" else ""


def _lines(rng: Random, data: bytes, other: bytes) -> bytes:
    """A line deleted, repeated, inserted, or replaced by a line of the same key; brackets mostly stay."""
    lines, theirs = data.splitlines(keepends=True), other.splitlines(keepends=True)
    places = [at for at, line in enumerate(lines) if not line.strip().endswith((b"{", b"}")) or rng.random() < 0.05]
    if not places:
        return data
    at = rng.choice(places)
    alike = [line for line in (*lines, *theirs) if _key(line) == _key(lines[at])]
    choice = rng.random()
    if choice < 0.3:
        del lines[at]
    elif choice < 0.7:
        lines[at] = rng.choice(alike)
    elif choice < 0.85:
        lines[at:at] = [lines[at]] * rng.choice((1, 1, 2, 500))
    else:
        lines.insert(at, rng.choice((*alike, rng.choice(theirs or lines))))
    return b"".join(lines)


def _key(line: bytes) -> bytes:
    """The indentation and the name at the beginning of a line, up to a sign."""
    return re.split(rb"[:={]", line, maxsplit=1)[0]


def _replace(rng: Random, tokens: list[bytes], at: int, other: bytes, words: Words) -> list[bytes]:
    old = tokens[at]
    sources: list[bytes] = [rng.choice(tokens), rng.choice(_STRANGE), rng.choice(words) if words else b"x"]
    if old[:1].isdigit() or old[:1] == b"-":
        sources += [rng.choice(_NUMBERS)] * 6
    elif old[:1] in (b'"', b"'"):
        sources += [old[:1] + raw.edit(rng, old[1:-1], other, words) + old[-1:]] * 3
    return [*tokens[:at], rng.choice(sources), *tokens[at + 1 :]]


def _delete(rng: Random, tokens: list[bytes], at: int, _other: bytes, _words: Words) -> list[bytes]:
    return tokens[:at] + tokens[at + rng.choice((1, 1, 2, 8)) :]


def _insert(rng: Random, tokens: list[bytes], at: int, _other: bytes, words: Words) -> list[bytes]:
    new = rng.choice((rng.choice(_STRANGE), rng.choice(_NUMBERS), rng.choice(tokens), *words[:1]))
    return [*tokens[:at], new * rng.choice((1, 1, 1, 2, 200)), *tokens[at:]]


def _repeat(rng: Random, tokens: list[bytes], at: int, _other: bytes, _words: Words) -> list[bytes]:
    some = tokens[at : at + rng.choice((1, 2, 8, 64))]
    return tokens[:at] + some * rng.choice((1, 2, 30)) + tokens[at:]


def _swap(rng: Random, tokens: list[bytes], at: int, _other: bytes, _words: Words) -> list[bytes]:
    to = rng.randrange(len(tokens))
    tokens[at], tokens[to] = tokens[to], tokens[at]
    return tokens


def _graft(rng: Random, tokens: list[bytes], at: int, other: bytes, _words: Words) -> list[bytes]:
    """A line, or several, of the other text."""
    lines = other.splitlines(keepends=True) or [b""]
    first = rng.randrange(len(lines))
    return [*tokens[:at], *lines[first : first + rng.choice((1, 1, 3, 10))], *tokens[at:]]


def _nest(rng: Random, tokens: list[bytes], at: int, _other: bytes, _words: Words) -> list[bytes]:
    left, right = rng.choice(_BRACKETS)
    deep = rng.choice((1, 2, 99, 101, 1500))
    name = rng.choice((b"", rng.choice(tokens)[:20]))
    stop = min(len(tokens), at + rng.randrange(20))
    return [*tokens[:at], (name + left) * deep, *tokens[at:stop], right * rng.choice((deep, deep, deep - 1)),
            *tokens[stop:]]


_EDITS: tuple[Callable[[Random, list[bytes], int, bytes, Words], list[bytes]], ...] = (
    _replace, _replace, _replace, _replace, _delete, _insert, _repeat, _swap, _graft, _nest)
