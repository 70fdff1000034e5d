"""The kernel that cuts text at matches of a regular expression, by RE2.

The first group of a match is the delimiter. The search goes on behind the whole match, in the rest of the text alone:
`^` matches at the start of the rest. A pattern without a group cuts nothing, as in TensorFlow Text. TensorFlow Text
never returns for a pattern that matches the empty text; here it is an InvalidArgument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from heald.api import Bind, InvalidArgument, Kernels, Library

from ..rows import Array, columns, integers, splits, strings

RE2 = Library("RE2", "re2", "google-re2")
Span = tuple[int, int]


@lru_cache(maxsize=64)
def compile_expression(pattern: bytes) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise InvalidArgument(f"Invalid pattern: {pattern!r}, error: {error}") from None


def split_at_matches(_: Bind) -> Callable[..., Any]:
    def run(texts: Array, delimiters: Array, kept_delimiters: Array) -> tuple[Array, ...]:
        expression = compile_expression(delimiters.item())
        kept_expression = compile_expression(kept_delimiters.item()) if kept_delimiters.item() else None
        spans = [list(token_spans(text, expression, kept_expression)) for text in texts]
        tokens = [text[start:end] for text, row in zip(texts, spans, strict=True) for start, end in row]
        starts, ends = columns(spans, 2)
        return strings(tokens), integers(starts), integers(ends), splits(map(len, spans))

    return run


def token_spans(text: bytes, expression: Any, kept_expression: Any) -> Iterator[Span]:
    """Yield the tokens, and the delimiters that `kept_expression` matches as a whole."""
    at = 0
    while expression.groups and (match := expression.search(text[at:])) is not None:
        if not match.end():
            raise InvalidArgument("the pattern of delimiters matches the empty text, which cuts a text into no parts")
        start, end = match.span(1)
        if start < 0:
            raise InvalidArgument("the first group of the pattern of delimiters has no part in a match")
        if start:
            yield at, at + start
        if kept_expression is not None and kept_expression.fullmatch(text[at + start : at + end]) is not None:
            yield at + start, at + end
        at += match.end()
    if at < len(text):
        yield at, len(text)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("RegexSplitWithOffsets", allocates=True, library=RE2)(split_at_matches)
