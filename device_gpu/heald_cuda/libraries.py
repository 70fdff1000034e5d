"""NVIDIA's libraries of products, loaded from their wheels or from the system. None is required.

`blas` and `cudnn` are written against the documented C interfaces.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from heald.api import Unavailable, errors, install_hint

INSTALL = install_hint("heald-cuda[libraries]")
WORKSPACE = 32 << 20  # bytes of a device that its libraries share: work on one stream is in order


def load(name: str) -> Any:
    """The shared library of this file name, such as libcublasLt.so.13. Raises Unavailable."""
    library = open_library(name)
    if isinstance(library, str):
        raise Unavailable(f"{name} cannot be loaded: {library}", hint=INSTALL)
    return library


@cache
def open_library(name: str) -> Any:
    """The library, or the reason for which there is none. `load` and `is_there` ask here."""
    reason = ""
    for path in (*_in_wheels(name), name):
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            reason = str(error)
    return reason


def is_there(name: str) -> bool:
    return not isinstance(open_library(name), str)


def _in_wheels(name: str) -> Iterator[Path]:
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(folder).glob(f"*/lib/{name}"))


def check_status(library: str, function: str, status: int) -> None:
    """Raise Internal for a status that is no success."""
    if status:
        raise errors.Internal(f"{library}: {function} returned status {status}",
                              hint="remove the library's wheel: the plugin's own kernels serve then")


class Calls:
    """Calls functions of a library that return a status. `name`: the library's, as errors have it."""

    def __init__(self, name: str, library: Any) -> None:
        self._name = name
        self._library = library

    def _call(self, function: str, *arguments: Any) -> None:
        check_status(self._name, function, getattr(self._library, function)(*arguments))
