"""Diagnostics: their text, the comments that expect them, and files of several texts.

MLIR's options `-verify-diagnostics` and `-split-input-file` have these rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from heald.api import errors

from .lexer import MalformedText

KINDS = ("error", "note", "remark", "warning")
_SPLIT = re.compile(r"^[ \t]*// -----.*\n?", re.MULTILINE)
_EXPECTED = re.compile(
    r"expected-(?P<kind>error|note|remark|warning)(?P<regex>-re)? *"
    r"(?:@(?:(?P<sign>[+-])(?P<lines>\d{1,9})|(?P<word>above|below|unknown)))? *"
    r"(?:(?P<count>\d{1,9})(?P<more>\+)? *)?"
    r"\{\{(?P<text>.*)\}\}[ \t]*$")
_PATTERN = re.compile(r"\{\{(.*?)\}\}")


class Diagnostic(NamedTuple):
    """`line` and `column` are 0 where the place is unknown."""

    kind: str
    file: str
    line: int
    column: int
    message: str

    def rendered_text(self, source: str | None = None, first_line: int = 1) -> str:
        """The diagnostic as MLIR prints it: `file:line:column: error: message`, then the line with a caret.

        `source`: the text, whose first line has the number `first_line`.
        """
        prefix = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: "
        lines = [f"{prefix}{self.kind}: {self.message}"]
        texts = source.split("\n") if source is not None else []
        if self.line and 0 <= self.line - first_line < len(texts):
            text = texts[self.line - first_line]
            lines += [text, re.sub(r"[^\t]", " ", text[:self.column - 1]) + "^"]
        return "\n".join(lines).encode("utf-8", "backslashreplace").decode()  # a text may have bytes beyond UTF-8


class InputChunk(NamedTuple):
    """One of the texts of a file; `line` is the number of its first line."""

    text: str
    line: int


@dataclass
class Expected:
    """A diagnostic that a comment of the text expects. `line`: None where the place is to be unknown.

    `count`: the number of such diagnostics. `or_more`: True where further ones are expected, too.
    """

    kind: str
    line: int | None
    pattern: re.Pattern[str]
    text: str
    comment_line: int
    count: int = 1
    or_more: bool = False
    matches: int = 0

    def takes(self, diagnostic: Diagnostic) -> bool:
        """True for a diagnostic that this comment expects and that no earlier one has used up."""
        return (self.kind == diagnostic.kind and self.line == (diagnostic.line or None)
                and (self.or_more or self.matches < self.count)
                and self.pattern.search(diagnostic.message) is not None)

    def missing_message(self) -> str:
        times = "" if self.count == 1 else f" {self.count} times, but {self.matches}"
        return f'expected {self.kind} "{self.text}" was not produced{times}'


def split_input(text: str) -> list[InputChunk]:
    """The texts between lines that begin with `// -----`."""
    chunks, start, line = [], 0, 1
    for match in _SPLIT.finditer(text):
        chunks.append(InputChunk(text[start:match.start()], line))
        line += text.count("\n", start, match.end())
        start = match.end()
    return [*chunks, InputChunk(text[start:], line)]


def diagnostics_of(error: errors.HealdError, file: str = "-") -> Iterator[Diagnostic]:
    """An error and its notes as diagnostics. An error without a place has the line 0."""
    location = error.location
    message = error.message
    if location is not None and location.line:
        yield Diagnostic("error", location.file, location.line, location.column or 1, message)
    else:
        yield Diagnostic("error", file, 0, 0, message)
    if isinstance(error, MalformedText):
        for where, text in error.notes:
            yield Diagnostic("note", where.file, where.line or 0, where.column or 1, text)


def expected_diagnostics(text: str, first_line: int = 1) -> list[Expected]:
    """The comments `expected-error {{text}}` of a text, with `@+1`, `@-1`, `@above`, `@below`, `@unknown`, and `-re`.

    `@above` and `@below` are the nearest lines without such a comment, so comments may stand one under another. A
    number in front of the text expects the diagnostic so many times, `2+` that often or more. Raises InvalidArgument
    for a pattern that is no regular expression.
    """
    expectations: list[Expected] = []
    below: list[Expected] = []
    last_line = above = first_line - 1
    for last_line, source in enumerate(text.split("\n"), first_line):
        match = _EXPECTED.search(source)
        if match is None:
            for one in below:
                one.line = last_line
            below, above = [], last_line
            continue
        pattern = _pattern(match["text"], match["regex"], last_line)
        one = Expected(match["kind"], _target_line(match, last_line, above), pattern, match["text"], last_line,
                       1 if match["count"] is None else int(match["count"]), match["more"] is not None)
        expectations.append(one)
        below += [one] if match["word"] == "below" else []
    return expectations


def _target_line(match: re.Match[str], line: int, above: int) -> int | None:
    """The line of a comment's diagnostic; that of the comment for `@below`, until the next line is known."""
    if match["lines"]:
        return line + int(match["sign"] + match["lines"])
    return {"above": above, "unknown": None}.get(match["word"], line)


def _pattern(text: str, is_regex: str | None, line: int) -> re.Pattern[str]:
    """Return the pattern of a message: the text itself, or with `-re` the text with patterns in double braces."""
    if not is_regex:
        return re.compile(re.escape(text))
    parts = _PATTERN.split(text)
    try:
        return re.compile("".join([f"(?:{part})" if i % 2 else re.escape(part) for i, part in enumerate(parts)]))
    except re.error as error:
        raise errors.InvalidArgument(f"line {line}: the pattern {{{{{text}}}}} is no regular expression: {error}",
                                     hint="escape what is to be taken literally") from error


def diagnostic_mismatches(diagnostics: Sequence[Diagnostic], expected: Sequence[Expected], file: str = "-",
                          ) -> list[Diagnostic]:
    """Return an error for each diagnostic that the text does not expect, and for each that it expects in vain.

    `file`: the name of the text.
    """
    mismatches = []
    for diagnostic in diagnostics:
        one = next((one for one in expected if one.takes(diagnostic)), None)
        if one is not None:
            one.matches += 1
        else:
            message = f"unexpected {diagnostic.kind}: {diagnostic.message}"
            mismatches.append(diagnostic._replace(kind="error", message=message))
    return mismatches + [Diagnostic("error", file, one.comment_line, 1, one.missing_message())
                         for one in expected if one.matches < one.count]
