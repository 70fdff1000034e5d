"""Files that are read: their errors are typed and name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import DataLoss, HealdError, InvalidArgument, Location, NotFound, did_you_mean, of_system


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn the errors of reading `file` into typed errors that name it."""
    try:
        yield
    except HealdError as error:
        raise error.at(location=Location(str(file))) from error.__cause__
    except OSError as error:
        raise of_system(error, file) from error


def check_file(file: Path) -> None:
    """Raises InvalidArgument for a folder, NotFound for a missing file, DataLoss for an empty one, with a hint where
    there is one."""
    if file.is_dir():
        raise InvalidArgument("this is a folder, not a file")
    if not file.exists():
        names = [p.name for p in file.parent.iterdir()] if file.parent.is_dir() else []
        raise NotFound("no such file", hint=did_you_mean(file.name, names))
    if file.is_file() and not file.stat().st_size:
        raise DataLoss("the file is empty", hint="export the graph again")
