"""The paths of the interface, matched as TensorFlow Serving does: whole, with the query, before names are decoded."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from heald.errors import InvalidArgument

_MODEL = r"/v1/models"
_VERSION = r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
_POST = re.compile(rf"(?i:{_MODEL}/(?P<name>[^/:]+){_VERSION}):(?P<verb>classify|regress|predict)")
_GET = re.compile(rf"(?i:{_MODEL}(?:/(?P<name>[^/:]+))?{_VERSION}(?P<verb>/metadata)?)")
MOST_PATHS = 64  # that are remembered; clients repeat theirs
LARGEST_VERSION = (1 << 63) - 1
METADATA, STATUS = "metadata", "status"


class Call(NamedTuple):
    """`verb`: predict, classify, regress, metadata or status."""

    verb: str
    name: str
    version: int | None = None
    label: str | None = None


class Malformed(InvalidArgument):
    """A request that is none of the interface's."""


@lru_cache(MOST_PATHS)
def parse_path(method: str, target: str) -> Call:
    """The call that a request line names. Raises Malformed, and InvalidArgument for a version beyond 63 bits."""
    match = {"POST": _POST, "GET": _GET}[method].fullmatch(target) if method in ("POST", "GET") else None
    if match is None:
        raise Malformed(f"Malformed request: {method} {target}")
    parts = match.groupdict()
    verb = parts["verb"]
    if method == "GET":
        verb = METADATA if verb == "/metadata" else STATUS
        if not parts["name"]:
            raise InvalidArgument("Missing model name in request.")
    return Call(verb, unquote(parts["name"]), _version(parts["version"]),
                None if parts["label"] is None else unquote(parts["label"]))


def _version(text: str | None) -> int | None:
    if text is None:
        return None
    if len(text) > 4000 or int(text) > LARGEST_VERSION:
        raise InvalidArgument(f"Failed to convert version: {text} to numeric.")
    return int(text)
