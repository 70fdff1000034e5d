"""Checks of a caller's arguments, before a protocol sees them. Each raises ClientError."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

from .calls import PredictCall
from .errors import ClientError

HEADER_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
LARGEST_VERSION = (1 << 63) - 1


def check_call(call: PredictCall) -> None:
    check_model(call.model)
    check_timeout(call.timeout)
    _check_text(call.signature, "the signature")
    if not isinstance(call.inputs, Mapping):
        raise _invalid(f"inputs are a mapping of names to arrays, not {type(call.inputs).__name__}")
    if isinstance(call.outputs, str | bytes):
        raise _invalid(f"outputs are a list of names, not the text {call.outputs!r}")
    for kind, names in (("an input", call.inputs), ("an output", call.outputs)):
        for name in names:
            _check_text(name, f"the name of {kind}")
    version = call.version
    if version is not None and (type(version) is not int or not 0 <= version <= LARGEST_VERSION):
        raise _invalid(f"the version {version!r} is no whole number of 0 to {LARGEST_VERSION}")


def check_model(model: Any) -> None:
    if model == "":
        raise _invalid("the model has no name")
    _check_text(model, "the model")


def check_timeout(timeout: Any) -> None:
    """Raises DEADLINE_EXCEEDED for a time that has passed, as a caller that computes the rest of its time expects."""
    if timeout is None:
        return
    if not isinstance(timeout, int | float) or isnan(timeout):
        raise _invalid(f"the timeout {timeout!r} is no number of seconds")
    if timeout <= 0:
        raise ClientError("DEADLINE_EXCEEDED", f"the timeout is {timeout} s")


def check_header(name: Any, value: Any) -> None:
    """Raises ClientError for a header that HTTP or gRPC would not carry."""
    for text, kind in ((name, "name"), (value, "value")):
        if not isinstance(text, str) or not text.isascii() or not text.isprintable():
            raise _invalid(f"a header has a {kind} that is no printable ASCII text")
    if not name or not set(name.lower()) <= HEADER_CHARACTERS:
        raise _invalid(f"'{name}' is no name of a header")


def _check_text(text: Any, kind: str) -> None:
    if not isinstance(text, str):
        raise _invalid(f"{kind} is a text, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _invalid(f"{kind} is no UTF-8: {text!r}") from None


def _invalid(text: str) -> ClientError:
    return ClientError("INVALID_ARGUMENT", text)
