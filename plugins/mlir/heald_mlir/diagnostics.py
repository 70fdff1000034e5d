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
    r"(?:@(?:(?P<sign>[+-])(?P<lines>\d+)|(?P<word>above|below|unknown)))? *"
    r"\{\{(?P<text>.*)\}\}[ \t]*$", re.MULTILINE)
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
        return "\n".join(lines)


class InputChunk(NamedTuple):
    """One of the texts of a file; `line` is the number of its first line."""

    text: str
    line: int


@dataclass
class Expected:
    """A diagnostic that a comment of the text expects. `line`: None where the place is to be unknown."""

    kind: str
    line: int | None
    pattern: re.Pattern[str]
    text: str
    comment_line: int
    matched: bool = False


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

    Raises InvalidArgument for a pattern that is no regular expression.
    """
    expectations = []
    for match in _EXPECTED.finditer(text):
        line = first_line + text.count("\n", 0, match.start())
        target: int | None = line
        if match["lines"]:
            target = line + int(match["sign"] + match["lines"])
        elif match["word"]:
            target = {"above": line - 1, "below": line + 1, "unknown": None}[match["word"]]
        pattern = _pattern(match["text"], match["regex"], line)
        expectations.append(Expected(match["kind"], target, pattern, match["text"], line))
    return expectations


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


def diagnostic_mismatches(diagnostics: Sequence[Diagnostic], expected: Sequence[Expected]) -> list[Diagnostic]:
    """Return an error for each diagnostic that the text does not expect, and for each that it expects in vain."""
    mismatches = []
    for diagnostic in diagnostics:
        line = diagnostic.line or None
        for one in expected:
            if not one.matched and one.kind == diagnostic.kind and one.line == line and (
                    one.pattern.search(diagnostic.message)):
                one.matched = True
                break
        else:
            message = f"unexpected {diagnostic.kind}: {diagnostic.message}"
            mismatches.append(diagnostic._replace(kind="error", message=message))
    file = diagnostics[0].file if diagnostics else "-"
    return mismatches + [Diagnostic("error", file, one.comment_line, 1,
                                    f"expected {one.kind} \"{one.text}\" was not produced")
                         for one in expected if not one.matched]
