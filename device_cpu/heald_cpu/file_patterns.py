"""Patterns of file names, with the meaning that TensorFlow's MatchingFiles gives them: `*`, `?`, `[...]` and `\\`.

A wildcard never matches a separator, and matches a leading dot. Folders are listed one level after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

ListFolder = Callable[[bytes], Sequence[bytes] | None]  # the names in a folder, None where there is no folder

_WILDCARD = re.compile(rb"[*?\[\\]")
_ANY, _NOTHING = rb".", rb"(?!)"


def has_wildcard(pattern: bytes) -> bool:
    """True when the pattern is more than the name of one file."""
    return _WILDCARD.search(pattern) is not None


def matches(pattern: bytes, list_folder: ListFolder) -> list[bytes]:
    """Return the paths that match a pattern with wildcards, in no order."""
    wildcard = _WILDCARD.search(pattern)
    assert wildcard is not None
    folder, slash, _ = pattern[: wildcard.start()].rpartition(b"/")
    path_parts = pattern[len(folder) + len(slash):].removesuffix(b"/").split(b"/")
    if folder.endswith(b"/") or b"" in path_parts:
        return []  # TensorFlow matches paths with single separators only
    paths = [folder or slash or b"."]
    for part in path_parts:
        expression = pattern_expression(part)
        paths = [_path_of(parent, name) for parent in paths for name in list_folder(parent) or ()
                 if expression.fullmatch(name)]
    return paths


def _path_of(folder: bytes, name: bytes) -> bytes:
    return (folder if folder.endswith(b"/") else folder + b"/") + name


def pattern_expression(part: bytes) -> re.Pattern[bytes]:
    """Return the expression for the names that one part of a pattern, between two separators, matches.

    A star is an atomic group with the text behind it: no pattern takes exponential time.
    """
    chunks = [b""]
    for token in _tokens(part):
        if token == b"*":
            chunks.append(b"")
        else:
            chunks[-1] += token
    first, *others = chunks
    middle = b"".join(b"(?>.*?" + chunk + b")" for chunk in others[:-1])
    last = b".*" + others[-1] if others else b""
    return re.compile(first + middle + last, re.DOTALL)


def _tokens(part: bytes) -> Iterator[bytes]:
    """Yield a star as it is, and the expression of each other element."""
    at = 0
    while at < len(part):
        character = part[at:at + 1]
        end = _end_of_set(part, at) if character == b"[" else -1
        if end > 0:
            yield _set(part[at + 1:end])
            at = end
        elif character == b"\\" and at + 1 < len(part):
            at += 1
            yield re.escape(part[at:at + 1])
        elif character == b"?":
            yield _ANY
        else:
            yield character if character == b"*" else re.escape(character)
        at += 1


def _end_of_set(part: bytes, at: int) -> int:
    """Return the position of the bracket that closes a set; -1 without one, when the open bracket is a character."""
    first = at + 1 + (part[at + 1:at + 2] in (b"!", b"^"))
    return part.find(b"]", first + 1)


def _set(inside: bytes) -> bytes:
    """Return the expression of a set of characters, whose text stands between the brackets."""
    negated = inside[:1] in (b"!", b"^")
    texts = inside[negated:]
    members: set[int] = set()
    at = 0
    while at < len(texts):
        low, at = _member(texts, at)
        if texts[at:at + 1] == b"-" and at + 1 < len(texts):
            high, at = _member(texts, at + 1)
            members.update(range(low, high + 1))
        else:
            members.add(low)
    if not members:
        return _ANY if negated else _NOTHING
    return b"[" + b"^" * negated + b"".join(re.escape(bytes([member])) for member in sorted(members)) + b"]"


def _member(texts: bytes, at: int) -> tuple[int, int]:
    """Return the character at a position of a set, without its backslash, and the position behind it."""
    at += texts[at:at + 1] == b"\\" and at + 1 < len(texts)
    return texts[at], at + 1
