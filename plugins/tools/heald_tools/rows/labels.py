"""Labels: the names of classes in a file, one a line."""

from __future__ import annotations

from pathlib import Path

from heald.errors import DataLoss

from .results import Labels
from .text_files import open_text


def read_labels(file: str | None, top: int) -> Labels | None:
    """The labels of a file, or None without one. Blank lines at the end do not count.

    Raises DataLoss for a file without labels, and the errors of reading a text.
    """
    if file is None:
        return None
    with open_text(Path(file), "utf-8") as text:
        names = text.read().rstrip().splitlines()
    if not names:
        raise DataLoss(f"'{file}' has no labels", hint="write the name of a class on each line")
    return Labels([name.strip() for name in names], top)
