"""Kernels of regular expressions, by RE2, whose time is linear in the text for every pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from heald.api import Bind, Kernels, Library, errors

from .strings import attribute_bytes, map_elements

RE2 = Library("RE2", "re2", "google-re2")
Run = Callable[..., Any]
Rewrite = Callable[[bytes], bytes]

# a character of valid UTF-8, surrogates included, or else a byte
CHARACTER = re.compile(rb"""(?xs)
    [\x00-\x7f] | [\xc2-\xdf][\x80-\xbf] | (?:\xe0[\xa0-\xbf] | [\xe1-\xef][\x80-\xbf])[\x80-\xbf]
    | (?:\xf0[\x90-\xbf] | [\xf1-\xf3][\x80-\xbf] | \xf4[\x80-\x8f])[\x80-\xbf]{2} | .""")
LITERAL = re.compile(rb"[\w <>/,;:!@#%&=~\"'-]+", re.ASCII)
CLASS = re.compile(rb"""(?x)
    (?P<one> \[ \^? (?: \\[sSdDwW] | \\[^\w] | \[:\^?\w+:\] | [^\\\[\]] )+ \]
             | \\[sSdDwW] | \\[^\w] | [^][\\(){}.*+?^$|] )
    (?P<repeated> \+? )""", re.ASCII | re.DOTALL)
GROUP = re.compile(rb"\\(.?)", re.DOTALL)


@lru_cache(maxsize=64)
def compile_expression(pattern: bytes) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise errors.InvalidArgument(f"Invalid pattern: {pattern!r}, error: {error}") from None


def static_full_match(b: Bind) -> Run:
    match = compile_expression(attribute_bytes(b, "pattern")).fullmatch
    return map_elements(lambda x: match(x) is not None)


def full_match(_: Bind) -> Run:
    def run(x: Any, pattern: Any, out: Any) -> None:
        match = compile_expression(pattern[()]).fullmatch
        map_elements(lambda text: match(text) is not None)(x, out)

    return run


def static_replace(b: Bind) -> Run:
    pattern, rewrite = attribute_bytes(b, "pattern"), attribute_bytes(b, "rewrite")
    return map_elements(rewriting(pattern, rewrite, everywhere=b.attrs["replace_global"]))


def replace(b: Bind) -> Run:
    everywhere = b.attrs["replace_global"]

    def run(x: Any, pattern: Any, rewrite: Any, out: Any) -> None:
        map_elements(rewriting(pattern[()], rewrite[()], everywhere=everywhere))(x, out)

    return run


def rewriting(pattern: bytes, rewrite: bytes, *, everywhere: bool) -> Rewrite:
    r"""RE2's Replace and GlobalReplace: \0 to \9 in `rewrite` are groups. A rewrite with a group that the pattern lacks
    changes nothing. With a malformed rewrite, Replace changes nothing, and GlobalReplace uses the text before the
    fault.
    """
    expression = compile_expression(pattern)
    parts, is_whole = _parts(rewrite)
    if max((p for p in parts if isinstance(p, int)), default=0) > expression.groups or not (is_whole or everywhere):
        return bytes

    replacement = _replacement(parts)
    texts = [part for part in parts if isinstance(part, bytes)]
    if everywhere and len(texts) == len(parts):
        quick = ascii_replacing(pattern, b"".join(texts))
        if quick is not None:
            return lambda x: quick(x) if x.isascii() else _replace_matches(expression, replacement, x)

    def once(x: bytes) -> bytes:
        match = expression.search(x)
        return x if match is None else x[: match.start()] + replacement(match) + x[match.end() :]

    return (lambda x: _replace_matches(expression, replacement, x)) if everywhere else once


def ascii_replacing(pattern: bytes, replacement: bytes) -> Rewrite | None:
    """A function that replaces all matches in texts of ASCII, for a pattern that is a text without operators, or one
    character or class, repeated by + or not. None for other patterns.

    RE2 is called through Python for every match: for the patterns that clean texts this takes 40 us a text. Bytes have
    methods that take less than one. RE2 itself says which characters a class has.
    """
    if LITERAL.fullmatch(pattern):
        return lambda x: x.replace(pattern, replacement)
    parsed = CLASS.fullmatch(pattern)
    if parsed is None:
        return None
    is_member = compile_expression(parsed["one"]).fullmatch
    members = bytes(code for code in range(128) if is_member(bytes([code])))
    if not members:
        return bytes
    if parsed["repeated"] or len(replacement) > 1:
        runs = re.compile(b"[%s]%s" % (b"".join(b"\\x%02x" % code for code in members), parsed["repeated"]))
        return lambda x: runs.sub(lambda _: replacement, x)
    if not replacement:
        return lambda x: x.translate(None, members)
    table = bytes.maketrans(members, replacement * len(members))
    return lambda x: x.translate(table)


def _parts(rewrite: bytes) -> tuple[list[bytes | int], bool]:
    """Texts and numbers of groups, up to the end or a malformed escape; and True if the end was reached."""
    parts: list[bytes | int] = []
    at = 0
    for escape in GROUP.finditer(rewrite):
        parts.append(rewrite[at : escape.start()])
        if not (escape[1].isdigit() or escape[1] == b"\\"):
            return parts, False
        parts.append(int(escape[1]) if escape[1].isdigit() else b"\\")
        at = escape.end()
    return [*parts, rewrite[at:]], True


def _replacement(parts: list[bytes | int]) -> Callable[[Any], bytes]:
    texts = [p for p in parts if isinstance(p, bytes)]
    if len(texts) == len(parts):
        constant = b"".join(texts)
        return lambda _: constant
    return lambda match: b"".join([match.group(p) or b"" if isinstance(p, int) else p for p in parts])


def _replace_matches(expression: Any, replacement: Callable[[Any], bytes], x: bytes) -> bytes:
    """`x` with all matches replaced. An empty match at the end of the previous match is ignored: the search goes on
    behind the next character."""
    parts: list[bytes] = []
    at, last = 0, -1
    while at <= len(x):
        match = expression.search(x, at)
        if match is None:
            break
        start, end = match.span()
        parts.append(x[at:start])
        if start == end == last:
            character = CHARACTER.match(x, at)
            if character is None:
                break
            parts.append(character[0])
            at = character.end()
            continue
        parts.append(replacement(match))
        at = last = end
    return b"".join((*parts, x[at:]))


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "RegexFullMatch": full_match, "RegexReplace": replace, "StaticRegexFullMatch": static_full_match,
        "StaticRegexReplace": static_replace,
    }.items():
        kernels.kernel(op, library=RE2)(bind)
