"""Paths as users give them."""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import InvalidArgument, callers_code


def file_path(path: object) -> Path:
    """The path that a user gave. Raises InvalidArgument for an object that is no path and for text that names no
    file."""
    with callers_code("the path cannot be read"):
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if isinstance(text, str):
        text = str.__str__(text)
        if "\0" in text or _is_unencodable(text):
            raise InvalidArgument(f"the path {text!r} has characters that no file name can have")
        if text:
            return Path(text)
    description = "an empty text" if isinstance(text, str) else f"a {type(path).__name__}"
    raise InvalidArgument(f"the path is {description}", hint="a path is a str or a pathlib.Path")


def _is_unencodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return True
    return False
