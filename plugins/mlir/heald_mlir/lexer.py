"""Tokens of MLIR text, by one regular expression, and the place of each token for diagnostics."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from heald.api import errors

BLANK = r"[ \t\r\n\0]*+(?://[^\n]*+[ \t\r\n\0]*+)*+"  # MLIR takes a zero byte for a space
_VERBOSE_BLANK = BLANK.replace(" ", r"\x20")
SUFFIX = r"(?:\d++|[A-Za-z_$.\-][\w$.\-]*+)"
_PLAIN = r'[^"\\\n\v\f]*+'
_STRING = rf'"{_PLAIN}(?:\\(?:[nt"\\]|[0-9a-fA-F]{{2}}){_PLAIN})*+"'
TOKEN = re.compile(rf"""{_VERBOSE_BLANK}(?:
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
_BROKEN_STRING = re.compile(rf'"{_PLAIN}(?:\\(?:[nt"\\]|[0-9a-fA-F]{{2}}){_PLAIN})*+')
_BAD_TOKENS = {"!": "invalid type identifier", "#": "invalid attribute name", "%": "invalid SSA name",
               "^": "invalid block name"}
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
            raise self._bad_token()

    def _bad_token(self) -> MalformedText:
        at, character = self.at, self.text
        if character == "@":
            if not self.source.startswith('"', at + 1):
                return self.error("@ identifier expected to start with letter or '_'", at + 1)
            at, character = at + 1, '"'
        if character == ".":
            return self.error("expected three consecutive dots for an ellipsis", at + 1)
        if character == '"':
            match = _BROKEN_STRING.match(self.source, at)
            assert match is not None
            message = "unknown escape in" if self.source.startswith("\\", match.end()) else "expected '\"' in"
            return self.error(f"{message} string literal", match.end())
        return self.error(_BAD_TOKENS.get(character, "unexpected character"), at)

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
        if at is None:
            at = self.at - (self.kind == "end" and self.at > 0)
        return MalformedText(message, self.location(at), placed, hint)

    def wrong_token(self, message: str) -> MalformedText:
        """An error about the absence of a token: its place is the end of the token before it.

        A comment does not count: the place is then the end of a line before, or the start of the comment.
        """
        source, at = self.source, self.at - (self.kind == "end" and self.at > 0)
        end = at
        while True:
            end = len(source[:end].rstrip(" \t")) if source[end - 1:end] in (" ", "\t") else end
            if end == 0:
                return self.error(message, at)
            if source[end - 1] not in "\r\n":
                return self.error(message, end)
            end -= 1
            comment = source.find("//", source.rfind("\n", 0, end) + 1, end)
            if comment >= 0:
                end = comment

    def accept(self, text: str) -> bool:
        """Take a word or a punctuation, if it is the current token."""
        if self.text == text and self.kind != "string":
            self.advance()
            return True
        return False

    def expect(self, text: str, context: str = "") -> None:
        """Take a word or a punctuation. Raises MalformedText for another token."""
        if not self.accept(text):
            raise self.wrong_token(f"expected '{text}'{context}")

    def expect_keyword(self, text: str, context: str = "") -> None:
        """Take a word that a dialect names. Raises MalformedText, at the token itself, for another one."""
        if not self.accept(text):
            raise self.error(f"expected '{text}'{context}")

    def take(self, kind: str, what: str) -> str:
        """Take a token of a kind and return its text. Raises MalformedText with `what` was expected."""
        if self.kind != kind:
            raise self.wrong_token(f"expected {what}")
        text = self.text
        self.advance()
        return text

    def string_value(self) -> str:
        """Take a string and return its content."""
        return unescaped_text(self.take("string", "string"))


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
