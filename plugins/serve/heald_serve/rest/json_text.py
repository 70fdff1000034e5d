"""JSON in. orjson reads a plain body; one that it refuses is read by the standard library, with
RapidJSON's liberties: NaN and infinities, and text behind the document.

Of equal keys at the top the first counts, as there. orjson keeps the last, so a body that may have one of the
interface's keys twice goes to the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from heald.errors import InvalidArgument

TOP_KEYS = ("instances", "inputs", "signature_name", "examples", "context")
LONGEST_DEBUG_CHARACTERS = 1000
FEWEST_QUOTES_OF_TWO_KEYS = 4
_SPACE = " \t\n\r"
_SPECIAL = re.compile(r'"(?:[^"\\]|\\.)*"|(-?)Inf(?:inity)?\b', re.DOTALL)


def parse_object(body: bytes) -> Mapping[str, Any]:
    """The object of a body. Raises InvalidArgument, with TensorFlow Serving's texts, for anything else."""
    document = parse(body)
    if not isinstance(document, dict):
        raise InvalidArgument(f"JSON Value: {debug_text(document)} Is not object")
    return document


def parse(body: bytes) -> Any:
    """The first document of a body. Raises InvalidArgument."""
    import orjson

    if not body.strip():
        raise InvalidArgument("JSON Parse error: The document is empty")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "ecursion" in str(error):
            raise _too_deep() from None
        return _parse_liberally(body)
    return _parse_liberally(body) if _may_repeat_keys(body, document) else document


def _may_repeat_keys(body: bytes, document: Any) -> bool:
    """True when a key of the interface stands more often in the body than the document and its rows explain."""
    if not isinstance(document, dict) or body.count(b'"') < FEWEST_QUOTES_OF_TWO_KEYS:
        return False
    instances = document.get("instances")
    rows = instances if isinstance(instances, list) else ()
    for key in TOP_KEYS:
        count = body.count(b'"%s"' % key.encode())
        if count > 1 and count > (key in document) + sum(isinstance(row, dict) and key in row for row in rows):
            return True
    return False


def _parse_liberally(body: bytes) -> Any:
    try:
        text = body.decode("utf-8").lstrip(_SPACE)
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"JSON Parse error: Invalid encoding in string. at offset: {error.start}") from None
    text = _SPECIAL.sub(lambda match: match[0] if match[1] is None else f"{match[1]}Infinity", text)
    try:
        document, _ = _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"JSON Parse error: Invalid value. at offset: {error.pos}") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # of a number with thousands of digits
        raise InvalidArgument("JSON Parse error: Number too big to be stored in double.") from None
    return document


def _too_deep() -> InvalidArgument:
    return InvalidArgument("JSON Parse error: the document is nested too deep")


def _first_of_equal_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


_DECODER = json.JSONDecoder(object_pairs_hook=_first_of_equal_keys)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def parsed_bytes(body: bytes) -> int:
    """An upper bound of the memory of a body's values: 64 bytes for each, and for each list; 240 for each object."""
    return len(body) + 64 * (body.count(b",") + body.count(b"[")) + 240 * body.count(b"{")


def debug_text(value: Any) -> str:
    """A value as errors show it, cut."""
    text = ""
    try:
        for part in _ENCODER.iterencode(value):  # a large value is not written whole
            text += part[: LONGEST_DEBUG_CHARACTERS + 1]
            if len(text) > LONGEST_DEBUG_CHARACTERS:
                return f"{text[:LONGEST_DEBUG_CHARACTERS]}..."
    except (RecursionError, ValueError):
        return "a nested value"
    return text


def type_name(value: Any) -> str:
    """RapidJSON's name of a value's type."""
    if value is None:
        return "Null"
    if isinstance(value, bool):
        return str(value)
    for kind, name in ((dict, "Object"), (list, "Array"), (str, "String")):
        if isinstance(value, kind):
            return name
    return "Number"
