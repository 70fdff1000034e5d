"""Strings and names of ops in text."""

from __future__ import annotations

import re

from ..lexer import escaped

BARE_OP = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)


def op_name(op: str) -> str:
    """The name of an op, in quotes where it is no identifier."""
    return op if BARE_OP.match(op) else f'"{escaped(op)}"'


def string_text(text: str, canonical: bool) -> str:
    """The content of a device or a name. TensorFlow writes it as it is, so that its text may not be read back."""
    return text if canonical else escaped(text)
