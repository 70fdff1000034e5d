"""The formats of input files, each with its reader and library. A table: add a row for a new format."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple

from heald.api import Library, install_hint
from heald.errors import Unimplemented

from ..images import PICTURE_SUFFIXES

GZIP = ".gz"
PYARROW = Library("pyarrow", "pyarrow", "pyarrow")
SOUNDFILE = Library("soundfile", "soundfile", "soundfile")
SOXR = Library("soxr", "soxr", "soxr")


class Format(NamedTuple):
    """One format of files.

    `reader`: "module:function" of a file of many rows: (path, options) -> iterator of RowBatch.
    `decoder`: "module:function" of files that are one row each: (files, input's metadata, input's name, preprocessing)
    -> Undecoded.
    `gzip`: A file may be packed: data.csv.gz.
    `is_value`: A file is one value where the user asks for no batches.
    `has_same_columns`: All rows have the columns of the first one.
    `library`: A library of another project that all files of the format need.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str = ""
    decoder: str = ""
    gzip: bool = False
    is_value: bool = False
    library: Library | None = None
    has_same_columns: bool = False


FORMATS = (
    Format("CSV", (".csv", ".tsv"), reader="tables:read_csv", gzip=True, has_same_columns=True),
    Format("JSON lines", (".jsonl", ".ndjson"), reader="tables:read_json_lines", gzip=True),
    Format("lines of text", (".txt",), reader="arrays:read_lines", gzip=True, is_value=True),
    Format("picture", PICTURE_SUFFIXES, decoder="pictures:column_of_pictures", is_value=True),
    Format("sound", (".wav", ".flac", ".ogg"), decoder="sounds:column_of_sounds"),
    Format("TFRecord", (".tfrecord", ".tfrecords"), reader="records:read_records", gzip=True),
    Format("Parquet", (".parquet",), reader="parquet_files:read_parquet", library=PYARROW, has_same_columns=True),
    Format("NumPy array", (".npy",), reader="arrays:read_npy", is_value=True),
    Format("NumPy archive", (".npz",), reader="arrays:read_npz", is_value=True, has_same_columns=True),
)
BY_SUFFIX = {suffix: format_of_suffix for format_of_suffix in FORMATS for suffix in format_of_suffix.suffixes}


def format_of(path: PurePath) -> Format | None:
    """The format by the file's suffix, or None for one that no row has."""
    name = path.name.lower()
    if name.endswith(GZIP):
        packed = BY_SUFFIX.get(PurePath(name.removesuffix(GZIP)).suffix)
        return packed if packed is not None and packed.gzip else None
    return BY_SUFFIX.get(PurePath(name).suffix)


def check_library(library: Library | None, use: str) -> None:
    """Raises Unimplemented where the library is not installed. `use`: the purpose, such as "reading 'a.parquet'"."""
    if library is not None and library.lack() is not None:
        raise Unimplemented(f"{use} needs {library.name}", hint=install_hint(library.requirement))


def suffix_text() -> str:
    """All suffixes, for hints."""
    return ", ".join(BY_SUFFIX)


def format_named(name: str) -> Format:
    return next(row for row in FORMATS if row.name == name)
