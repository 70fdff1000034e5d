"""The files that an --input names: one file, a pattern, a folder, a list of files, or standard input."""

from __future__ import annotations

import glob
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from heald.errors import HealdWarning, InvalidArgument, NotFound, did_you_mean, of_system

from .formats import Format, check_library, format_of, suffix_text

STDIN = "-"
_PATTERN = frozenset("*?[")


class Source(NamedTuple):
    """Files of one format, in the order in which their rows come. `key`: the name of an array in each."""

    text: str
    format: Format
    files: Sequence[Path]
    key: str | None = None


def is_of_rows(text: str) -> bool:
    """True for a text that stands for many rows: a pattern, a folder, a list of files, standard input, a table.

    A sound alone is a row, too."""
    if text == STDIN or (text.startswith("@") and len(text) > 1):
        return True
    if is_pattern(text) or is_folder(text):
        return True
    of = format_of(Path(text))
    return of is not None and not of.is_value and Path(text).exists()


def is_rows_of_file(text: str) -> bool:
    """True for a file whose rows run in batches where the user asks for batches."""
    of = format_of(Path(split_key(text)[0]))
    return of is not None


def is_picture(text: str) -> bool:
    of = format_of(Path(text))
    return of is not None and bool(of.decoder)


def split_key(text: str) -> tuple[str, str | None]:
    """The path and the key of FILE.npz:KEY; no key for another text."""
    path, colon, key = text.rpartition(":")
    return (path, key) if colon and path.lower().endswith(".npz") else (text, None)


def is_pattern(text: str) -> bool:
    return bool(_PATTERN & set(text)) and not text.lstrip().startswith(("[", "{", '"')) and not os.path.lexists(text)


def is_folder(text: str) -> bool:
    try:
        return bool(text) and Path(text).is_dir()
    except (OSError, ValueError):  # a text that is too long, or has a zero byte
        return False


def find_source(text: str, name: str, default_format: Format | None = None) -> Source:
    """The files that a text names, in the order of their names, and their format.

    A folder's files are found at any depth; names that begin with a dot are left out. Files of no known format are left
    out with a warning. Raises NotFound and InvalidArgument.
    """
    path, key = split_key(text)
    formats: dict[str, Format] = {}
    by_format: dict[str, list[Path]] = {}
    unknown = 0
    for file in _files(path, name):
        of = default_format if str(file) == STDIN else format_of(file)
        if of is None:
            unknown += 1
            continue
        formats[of.name] = of
        by_format.setdefault(of.name, []).append(file)
    if not by_format:
        raise InvalidArgument(f"'{text}' for input '{name}' has no file of a known format",
                              hint=f"known: {suffix_text()}")
    if len(by_format) > 1:
        counts = ", ".join(f"{len(files)} of {of}" for of, files in by_format.items())
        raise InvalidArgument(f"'{text}' for input '{name}' has files of several formats: {counts}",
                              hint="name those of one format by a pattern such as 'FOLDER/**/*.csv'")
    if unknown:
        warnings.warn(f"'{text}' has {unknown:,} files of no known format; left out", HealdWarning, stacklevel=2)
    (of_all, files), = by_format.items()
    check_library(formats[of_all].library, f"reading '{files[0]}'")
    return Source(text, formats[of_all], files, key)


def _files(text: str, name: str) -> list[Path]:
    if text == STDIN:
        return [Path(STDIN)]
    if text.startswith("@"):
        return _read_list(text[1:])
    if is_folder(text):
        files = [Path(parent) / file for parent, folders, names in _walk(text) for file in sorted(names)
                 if not file.startswith(".")]
        if not files:
            raise NotFound(f"the folder '{text}' for input '{name}' has no files")
        return files
    if is_pattern(text):
        files = [Path(path) for path in sorted(glob.glob(text, recursive=True)) if not Path(path).is_dir()]  # noqa: PTH207
        if not files:
            raise NotFound(f"no file is named like '{text}', for input '{name}'",
                           hint="quote the pattern; ** stands for folders of any depth")
        return files
    path = Path(text)
    if not path.exists():
        beside = path.parent
        suggestion = did_you_mean(path.name, [p.name for p in beside.iterdir()]) if beside.is_dir() else None
        raise NotFound(f"there is no file '{text}' for input '{name}'", hint=suggestion)
    return [path]


def _walk(folder: str) -> list[tuple[str, list[str], list[str]]]:
    """The folders below a folder, by name. Links to folders are not followed: they may lead out, or in a circle."""
    folders_below = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        folders_below.append((parent, folders, names))
    return folders_below


def _read_list(list_file: str) -> list[Path]:
    """The paths in a file, one a line, seen from the file's folder."""
    try:
        text = sys.stdin.read() if list_file == STDIN else Path(list_file).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"the list '{list_file}' is no text in UTF-8: {error}") from error
    except OSError as error:
        raise of_system(error, Path(list_file)) from error
    folder = Path() if list_file == STDIN else Path(list_file).parent
    files = [folder / line.strip() for line in text.splitlines() if line.strip()]
    if not files:
        raise InvalidArgument(f"the list '{list_file}' names no file")
    return files
