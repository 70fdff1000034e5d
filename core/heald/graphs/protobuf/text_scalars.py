"""Scalars of protobuf's text form: from a token to the bytes of its value on the wire, without tag and length.

Numbers are spelt as protobuf's parser for Python reads them, so `0x1F`, `017`, `1_000` and `1.5f` are numbers. Strings
have the escapes of the language's specification, of which that parser misreads two: `\\?` and `\\u005c`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from functools import partial
from math import copysign, inf, nan
from typing import Any

from ...runtime.support.records import NamedTuple
from ...runtime.values import wire
from ...runtime.values.wire import put_varint

Read = Callable[[Any], bytes]

_EXPECTED_INTEGER = "an integer"
_EXPECTED_NUMBER = "a number"
_MOST_QUOTED_BYTES = 40  # bytes of the text that an error quotes
_C_OCTAL = re.compile(rb"(-?)0([0-9]+)")
_OCTAL_START = re.compile(rb"-?0[0-9]")
_INFINITY = re.compile(rb"-?inf(?:inity)?f?", re.IGNORECASE)
_NAN = re.compile(rb"nanf?", re.IGNORECASE)
_SHARED_ESCAPE = rb"""[abfnrtv\\'"]|[0-3][0-7]{0,2}+|[4-7][0-7]?+(?![0-7])|x[0-9a-fA-F]{2}"""  # Python's too
_SHARED = re.compile(rb"[^\\]*+(?:\\(?:" + _SHARED_ESCAPE + rb")[^\\]*+)*+")
_ESCAPE = re.compile(
    rb"\\(?:(" + _SHARED_ESCAPE + rb")|(\?)|x([0-9a-fA-F])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)"
)


class Scalar(NamedTuple):
    """A scalar type."""

    wire: int  # wire type
    expected: str  # the expected form, for errors
    read: Read  # the value of a token; raises ValueError
    token_bytes: Mapping[bytes, bytes]  # the bytes of common tokens
    default: bytes  # with its length, for types that have one


def quote_token(token: bytes) -> str:
    """A token as errors quote it: printable, and at most a line long."""
    text = token[:_MOST_QUOTED_BYTES].decode("utf-8", "replace") + ("..." if len(token) > _MOST_QUOTED_BYTES else "")
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def unescape(body: bytes) -> bytes:
    """The content of a string literal, from the bytes between its quotes. Raises ValueError for an unknown escape."""
    if b"\\" not in body:
        return body
    if not _SHARED.fullmatch(body):
        body = _ESCAPE.sub(_python_escape, body)
    return body.decode("unicode_escape").encode("latin-1")


def checked_utf8(content: bytearray) -> bytearray:
    """The content of a string field. Raises ValueError when it is not UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        raise ValueError("the escapes of this string are not UTF-8") from None
    return content


def _python_escape(escape: re.Match[bytes]) -> bytes:
    """An escape in the spelling of Python's string literals. Raises ValueError for an unknown escape."""
    shared, question, digit, short, long = escape.groups()
    if shared:
        return escape[0]
    if question or digit:
        return question or b"\\x0" + digit
    if not short and not long:
        end = min(escape.end() + 1, len(escape.string))
        raise ValueError(f"a string has an unknown escape, '{quote_token(escape.string[escape.start() : end])}'")
    code = int(short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError(f"a string has an escape that is not a character, '{quote_token(escape[0])}'")
    return b"\\\\" if code == ord("\\") else chr(code).encode()


def _integer(token: bytes, low: int, high: int, write: Read, name: str) -> bytes:
    octal = _C_OCTAL.fullmatch(token)
    try:
        value = int(b"%b0o%b" % octal.groups() if octal else token, 0)
    except ValueError:
        raise _unexpected_token_error(_EXPECTED_INTEGER, token) from None
    if not low <= value <= high:
        raise ValueError(f"'{quote_token(token)}' is out of range of {name}")
    return write(value)


def _enum(token: bytes, name: str) -> bytes:
    """A value of an enum by its number. The number may be newer than the table."""
    try:
        value = int(token, 0)
    except ValueError:
        raise ValueError(f"{name} has no value '{quote_token(token)}'") from None
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"'{quote_token(token)}' is out of range of {name}")
    return put_varint(value)


def _floating(token: bytes, form: struct.Struct) -> bytes:
    value = _number(token)
    try:
        return form.pack(value)
    except OverflowError:  # beyond float32's range
        return form.pack(copysign(inf, value))


def _number(token: bytes) -> float:
    if _OCTAL_START.match(token):
        raise _unexpected_token_error(_EXPECTED_NUMBER, token)
    try:
        return float(token)
    except ValueError:
        if _INFINITY.fullmatch(token):
            return -inf if token.startswith(b"-") else inf
        if _NAN.fullmatch(token):
            return nan
    try:
        return float(token.rstrip(b"fF"))
    except ValueError:
        raise _unexpected_token_error(_EXPECTED_NUMBER, token) from None


def _unexpected_token_error(expected: str, token: bytes) -> ValueError:
    return ValueError(f"expected {expected}, got '{quote_token(token)}'")


def _refuse_token(token: bytes, expected: str) -> bytes:
    raise _unexpected_token_error(expected, token)


def enum(name: str, values: Mapping[str, int]) -> Scalar:
    token_bytes = {value.encode(): put_varint(number) for value, number in values.items()}
    return Scalar(wire.VARINT, f"a value of {name}", partial(_enum, name=name), token_bytes, b"\0")


def _zigzag(value: int) -> bytes:
    return put_varint(value << 1 ^ value >> 63)


def _integers(name: str, bits: int, *, signed: bool, kind: int = wire.VARINT, write: Read = put_varint) -> Scalar:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    token_bytes = {b"%d" % value: write(value) for value in range(128)}
    read = partial(_integer, low=low, high=high, write=write, name=name)
    return Scalar(kind, _EXPECTED_INTEGER, read, token_bytes, token_bytes[b"0"])


def _floats(kind: int, code: str) -> Scalar:
    form = struct.Struct(code)
    return Scalar(kind, _EXPECTED_NUMBER, partial(_floating, form=form), {}, form.pack(0))


def _refusing(kind: int, expected: str, token_bytes: Mapping[bytes, bytes]) -> Scalar:
    return Scalar(kind, expected, partial(_refuse_token, expected=expected), token_bytes, b"\0")


_BOOLS = {b"true": b"\1", b"t": b"\1", b"1": b"\1", b"True": b"\1",
          b"false": b"\0", b"f": b"\0", b"0": b"\0", b"False": b"\0"}
SCALARS = {
    "int32": _integers("int32", 32, signed=True),
    "int64": _integers("int64", 64, signed=True),
    "uint32": _integers("uint32", 32, signed=False),
    "uint64": _integers("uint64", 64, signed=False),
    "sint64": _integers("sint64", 64, signed=True, write=_zigzag),
    "fixed32": _integers("fixed32", 32, signed=False, kind=wire.FIXED32, write=struct.Struct("<I").pack),
    "fixed64": _integers("fixed64", 64, signed=False, kind=wire.FIXED64, write=struct.Struct("<Q").pack),
    "float": _floats(wire.FIXED32, "<f"),
    "double": _floats(wire.FIXED64, "<d"),
    "bool": _refusing(wire.VARINT, "true or false", _BOOLS),
    "string": _refusing(wire.BYTES, "a string in quotes", {}),
    "bytes": _refusing(wire.BYTES, "a string in quotes", {}),
}
MESSAGE_SCALAR = _refusing(wire.BYTES, "a message in braces", {})  # stands for the type of message fields
