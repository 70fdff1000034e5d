"""Tokens of MLIR text, by one regular expression, and the place of each token for diagnostics."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from heald.api import errors

BLANK = r"\s*+(?://[^\n]*+\s*+)*+"
SUFFIX = r"(?:\d++|[A-Za-z_$.\-][\w$.\-]*+)"
_STRING = r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
TOKEN = re.compile(rf"""{BLANK}(?:
    (?P<value>%{SUFFIX})
  | (?P<word>[A-Za-z_][\w$.]*+)
  | (?P<punctuation>->|::|\.\.\.|\{{-\#|\#-\}}|[(){{}}<>\[\],:=?*+\-/|])
  | (?P<number>0x[0-9a-fA-F]++|\d++\.\d*+(?:[eE][+-]?\d++)?|\d++)
  | (?P<string>{_STRING})
  | (?P<symbol>@(?:[A-Za-z_][\w$.]*+|{_STRING}))
  | (?P<type>!{SUFFIX})
  | (?P<block>\^{SUFFIX})
  | (?P<alias>\#{SUFFIX})
  | (?P<end>\Z)
  | (?P<bad>.)
)""", re.VERBOSE | re.DOTALL | re.ASCII)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{2})|(.))")
_SHORT_ESCAPES = {"n": b"\n", "t": b"\t", '"': b'"', "\\": b"\\"}


class MalformedText(errors.InvalidArgument):
    """Text that is no MLIR, or no valid module. `notes`: further places, each with its text."""

    def __init__(self, message: str, location: errors.Location, notes: tuple[tuple[errors.Location, str], ...] = (),
                 hint: str | None = None) -> None:
        super().__init__(message, location=location, hint=hint)
        self.notes = notes


class Lexer:
    """The current token: its `kind`, `text`, start `at` and `end`. `line` is the number of the text's first line."""

    def __init__(self, text: str, file: str = "-", line: int = 1) -> None:
        self.source = text
        self.file = file
        self._first = line
        self._lines: list[int] | None = None
        self.end = 0
        self.kind = self.text = ""
        self.at = 0
        self.advance()

    def advance(self) -> None:
        """Take the next token."""
        match = TOKEN.match(self.source, self.end)
        assert match is not None
        assert match.lastgroup is not None
        self.kind = match.lastgroup
        self.text = match[self.kind]
        self.end = match.end()
        self.at = self.end - len(self.text)
        if self.kind == "bad":
            raise self.error('expected \'"\' in string literal' if self.text == '"' else "unexpected character")

    def jump(self, position: int) -> None:
        """Take the token at a position of the text."""
        self.end = position
        self.advance()

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of a position."""
        if self._lines is None:
            self._lines = [0, *accumulate(len(line) + 1 for line in self.source.split("\n"))]
        line = bisect_right(self._lines, at) - 1
        return line + self._first, at - self._lines[line] + 1

    def location(self, at: int) -> errors.Location:
        return errors.Location(self.file, *self.place(at))

    def error(self, message: str, at: int | None = None, *notes: tuple[int, str], hint: str | None = None,
              ) -> MalformedText:
        """An error at a position, by default at the current token."""
        placed = tuple((self.location(where), text) for where, text in notes)
        return MalformedText(message, self.location(self.at if at is None else at), placed, hint)

    def accept(self, text: str) -> bool:
        """Take a word or a punctuation, if it is the current token."""
        if self.text == text and self.kind != "string":
            self.advance()
            return True
        return False

    def expect(self, text: str, context: str = "") -> None:
        """Take a word or a punctuation. Raises MalformedText for another token."""
        if not self.accept(text):
            raise self.error(f"expected '{text}'{context}")

    def take(self, kind: str, what: str) -> str:
        """Take a token of a kind and return its text. Raises MalformedText with `what` was expected."""
        if self.kind != kind:
            raise self.error(f"expected {what}")
        text = self.text
        self.advance()
        return text


def unescaped_text(quoted: str) -> str:
    """The content of a string literal. Bytes that are no UTF-8 become surrogates."""
    body = quoted[1:-1]
    return body if "\\" not in body else unescaped_bytes(quoted).decode("utf-8", "surrogateescape")


def unescaped_bytes(quoted: str) -> bytes:
    """The bytes that a string literal stands for."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body.encode("utf-8", "surrogateescape")
    out, position = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        out += body[position:match.start()].encode("utf-8", "surrogateescape")
        plain = bytes.fromhex(match[1]) if match[1] else _SHORT_ESCAPES.get(match[2])
        out += match[0].encode("utf-8", "surrogateescape") if plain is None else plain
        position = match.end()
    out += body[position:].encode("utf-8", "surrogateescape")
    return bytes(out)


_UNPRINTABLE = re.compile(rb'[^ !#-\[\]-~]')


def escaped_text(text: str) -> str:
    """A string literal without its quotes: bytes that cannot be printed are two hexadecimal digits."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return escaped_bytes(text.encode("utf-8", "surrogateescape"))


def escaped_bytes(raw: bytes | memoryview) -> str:
    """The content of a string literal for these bytes."""
    return _UNPRINTABLE.sub(lambda m: b"\\\\" if m[0] == b"\\" else b"\\%02X" % m[0][0], raw).decode("ascii")
