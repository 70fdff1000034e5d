"""The text form of GraphDef and SavedModel, by protobuf's own parser and printer."""

from __future__ import annotations

import re

from . import wire
from .errors import InvalidArgument, Location, WeftError

_ESCAPE = r"\\(?:[abfnrtvxXuU\\'\"?]|[0-3][0-7]{0,2}|[4-7][0-7]?(?![0-7]))"
_TOKEN = re.compile(
    rf""" "(?:[^"\\\n]++|{_ESCAPE})*+" | '(?:[^'\\\n]++|{_ESCAPE})*+' | \#[^\n]* | [{{}}<>"'] """, re.VERBOSE
)
_STEPS = {"{": 1, "<": 1, "}": -1, ">": -1}
_PLACE = re.compile(r"^\d+:\d+ : ")
_SHOWN = 300  # characters of protobuf's message, which may quote a whole line


def parse(data: bytes, file: str, kind: str = "GraphDef") -> bytes:
    """The binary form of a GraphDef, or another kind of message, in text form; `file` is its name in errors.

    Raises InvalidArgument with the place in the text.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidArgument("this is not UTF-8", location=Location(file, line),
                              hint="pass text=False for the binary form") from None
    _check(text, file)
    from google.protobuf import text_format
    from google.protobuf.message import EncodeError

    from .messages import message_class

    message = message_class(kind)()
    try:
        text_format.Parse(text, message)
        return message.SerializeToString(deterministic=True)
    except text_format.ParseError as error:
        raise _located(error, file) from None
    except EncodeError as error:
        raise InvalidArgument(f"not a {kind}: {error}", location=Location(file)) from None


def _located(error: Exception, file: str) -> WeftError:
    line, column = error.GetLine(), error.GetColumn()  # type: ignore[attr-defined]
    message = _PLACE.sub("", str(error))
    return InvalidArgument(message[:_SHOWN], location=Location(file, line, column))


def _check(text: str, file: str) -> None:
    """What the parser cannot cope with is refused before: it recurses, and only warns of unknown escapes."""
    depth = 0
    for token in _TOKEN.finditer(text):
        found = token[0]
        depth += _STEPS.get(found, 0)
        if depth > wire.NESTING:
            problem = f"nesting: messages more than {wire.NESTING} deep"
        elif found in ('"', "'"):
            problem = "a string without an end, or with an unknown escape"
        else:
            continue
        raise InvalidArgument(problem, location=Location(file, text.count("\n", 0, token.start()) + 1))


def write(raw: bytes) -> bytes:
    """The text form of a binary GraphDef. Raises InvalidArgument for what text cannot express."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    from .messages import message_class

    try:
        message = message_class("GraphDef").FromString(raw)
    except DecodeError as error:
        raise InvalidArgument(f"this graph has no text form: {error}") from None
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        raise InvalidArgument("fields unknown to TensorFlow's messages have no text form", node=_unknown(raw),
                              hint="write the binary form")
    return text_format.MessageToString(message).encode()


def _unknown(raw: bytes) -> str | None:
    """The first node with fields that have no text form."""
    from .messages import message_class

    for node in message_class("GraphDef").FromString(raw).node:  # type: ignore[attr-defined]
        size = node.ByteSize()
        node.DiscardUnknownFields()
        if node.ByteSize() != size:
            return str(node.name)
    return None
