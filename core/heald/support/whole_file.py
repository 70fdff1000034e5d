"""Whole files: a file appears at its name once all of it is written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import InvalidArgument, Location, of_system

Buffer = bytes | bytearray | memoryview


def write_whole(file: Path, pieces: Iterable[Buffer]) -> None:
    """Write pieces of bytes to a file, one behind the other.

    Raises InvalidArgument for a path of something else than a file, NotFound, PermissionDenied or Unknown when the file
    cannot be written.
    """
    if file.exists() and not file.is_file():  # renaming a file to the name of a device would end the device
        raise InvalidArgument("this is not a regular file", location=Location(str(file)))
    aside = file.parent / f".heald-{os.urandom(6).hex()}.tmp"
    try:
        with aside.open("xb") as out:
            out.writelines(pieces)
        aside.replace(file)
    except OSError as error:
        raise of_system(error, file) from error
    finally:
        _remove(aside)


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except (OSError, ValueError):
        return  # the error that is being raised states the cause
