"""Names of classes among a model's assets: a text file with a line for each class of an output.

A SavedModel has such files in `assets`, and users add theirs in `assets.extra`. A file counts where it has as many
lines as an output has classes. A vocabulary may have as many lines by chance, so a file whose name tells of labels goes
first, and one that tells of words is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

FOLDERS = ("assets", "assets.extra")
SUFFIXES = ("", ".txt", ".labels", ".names")
LARGEST_FILE_BYTES = 4 << 20
_LABELS = re.compile(r"label|class|categor|synset|name", re.IGNORECASE)
_WORDS = re.compile(r"vocab|token|merges|word", re.IGNORECASE)


def class_labels(model_path: Path, counts: Collection[int]) -> dict[int, list[str]]:
    """The labels for each of these numbers of classes that a file has. Files that cannot be read are left out."""
    labels: dict[int, list[str]] = {}
    for file in sorted(_label_files(model_path), key=lambda file: (not _LABELS.search(file.name), file.name)):
        lines = _lines_of(file)
        if len(lines) in counts:
            labels.setdefault(len(lines), lines)
    return labels


def _label_files(model_path: Path) -> Iterator[Path]:
    """The files that may have labels. A link out of the model's folder is none."""
    root = model_path.resolve()
    for folder in FOLDERS:
        try:
            files = [*(model_path / folder).iterdir()]
        except OSError:
            continue
        yield from (file for file in files if file.suffix.lower() in SUFFIXES and not _WORDS.search(file.name)
                    and file.resolve().is_relative_to(root))


def _lines_of(file: Path) -> list[str]:
    """The lines of a small text, without blank ones at its end; none of any other file."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_FILE_BYTES:
            return []
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return []
    return [line.strip() for line in text.rstrip().splitlines()]
