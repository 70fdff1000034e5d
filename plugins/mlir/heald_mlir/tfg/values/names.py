"""Strings and names of ops in text."""

from __future__ import annotations

import re

from ...lexer import escaped_text

DIALECT = "tfg."  # may stand before the name of an op, and is no part of it
BARE_OP = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)


def op_name(op: str) -> str:
    """The name of an op, in quotes where it is no identifier. One with a point has the prefix of the dialect, as its
    first part would be the name of another dialect."""
    op = DIALECT + op if "." in op else op
    return op if BARE_OP.match(op) else f'"{escaped_text(op)}"'


def string_text(text: str, canonical: bool) -> str:
    """The content of a device or a name. TensorFlow writes it as it is, so that its text may not be read back."""
    return text if canonical else escaped_text(text)
