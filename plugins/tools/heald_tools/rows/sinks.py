"""Places of a table: standard output, a file, or a folder of shards.

A folder gets shards and their journal. A file of CSV or JSON lines is written in parts, into the folder FILE.parts with
its journal, and made of them at the end. A run that was cut off resumes from either, and the bytes are those of a run
that was not.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Protocol

from heald.errors import HealdError, InvalidArgument, Unimplemented
from heald.runtime.support import whole_file

from . import sound_files
from .formats import check_library
from .journal import Journal, Reached
from .results import Table
from .writers import LIBRARIES, WRITERS, CsvWriter, Writer, make_writer

STDOUT = "-"
GROWING = (".csv", ".jsonl")  # formats whose files may grow
PICTURE_SUFFIXES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}  # Pillow's formats
SHARDS = (*GROWING, ".parquet")  # formats of a folder's files
JOURNAL = "journal.json"  # of a folder
SHARD_ROWS = 10_000
SAVING = 2.0  # seconds of a part
LARGEST_PART = 1 << 24  # bytes


class Sink(Protocol):
    """A place that takes rows. `reached`: the state that the run resumes from. `null_count`: values that JSON lacks."""

    reached: Reached

    @property
    def null_count(self) -> int: ...

    def write(self, table: Table, reached: Reached) -> None:
        """Write rows, and take the state behind them."""


def is_folder(output: str) -> bool:
    return output.endswith(("/", os.sep)) or Path(output).is_dir() or Path(output).name.startswith("*.")


def folder_of(output: str) -> Path:
    """The folder of an output such as out/ or out/*.jsonl."""
    return Path(output).parent if Path(output).name.startswith("*.") else Path(output)


def is_of_pictures(output: str) -> bool:
    return Path(output).name.startswith("*.") and Path(output).suffix.lower() in PICTURE_SUFFIXES


def check_output(output: str, *, resume: bool, sound_rate: int | None = None) -> None:
    """Raises InvalidArgument for a place of no known format, or for sounds without a rate; Unimplemented for one that
    cannot resume."""
    if is_of_pictures(output):
        return
    suffix = _shard_suffix(output) if is_folder(output) else Path(output).suffix.lower()
    if is_of_sounds(output):
        if sound_rate is None:
            raise InvalidArgument(f"--output '{output}' needs the rate of its sounds", hint="--sample-rate 16000")
        if resume:
            raise Unimplemented("--resume: a folder of sounds has no journal", hint="a table resumes")
        return
    if output != STDOUT and suffix not in (SHARDS if is_folder(output) else WRITERS):
        known = ", ".join(SHARDS if is_folder(output) else WRITERS)
        raise InvalidArgument(f"--output '{output}' is no file of a known format",
                              hint=f"known: {known}; a folder such as 'out/' or 'out/*.jsonl' gets shards, "
                                   "'out/*.png' pictures, 'out/*.wav' sounds")
    if output != STDOUT:
        check_library(LIBRARIES.get(suffix), f"writing '{output}'")
    if resume and not is_folder(output) and suffix not in GROWING:
        raise Unimplemented(f"--resume: '{output}' is written at the end alone",
                            hint=f"these grow: {', '.join(GROWING)}, and a folder")


@contextmanager
def open_sink(output: str, journal: Journal | None, *, json_lines: bool, nan: str, sound_rate: int | None = None,
              ) -> Iterator[Sink]:
    """Yield the place of a table. An error in the block leaves the table unfinished."""
    if output == STDOUT:
        stream = _Stream(make_writer(".jsonl" if json_lines else ".csv", sys.stdout.buffer, nan))
        yield stream
        stream.finish()
        return
    if sound_rate is not None and is_of_sounds(output):
        yield sound_files.SoundFiles(folder_of(output), sound_rate)
        return
    if is_folder(output):
        if journal is None:
            raise Unimplemented("rows of standard input do not become shards", hint="give one file as --output")
        shards = _Shards(folder_of(output), _shard_suffix(output), journal, nan)
        yield shards
        shards.finish()
        return
    path = Path(output)
    if path.suffix.lower() not in GROWING or journal is None:
        with whole_file.writing_file(path) as out:
            stream = _Stream(make_writer(path.suffix.lower(), out, nan))
            yield stream
            stream.finish()
        return
    parts = _OneFile(path, journal, nan)
    try:
        yield parts
    except BaseException:
        parts.stop()
        raise
    parts.finish()


def journal_path(output: str) -> Path | None:
    """The place of the journal; None for an output that has none."""
    if output == STDOUT or is_of_sounds(output):
        return None
    if is_folder(output):
        return folder_of(output) / JOURNAL
    return Path(f"{output}.parts") / JOURNAL if Path(output).suffix.lower() in GROWING else None


def is_of_sounds(output: str) -> bool:
    return is_folder(output) and _shard_suffix(output) == sound_files.SUFFIX


def _shard_suffix(output: str) -> str:
    name = Path(output).name
    return name[1:].lower() if name.startswith("*.") else ".csv"


class _Stream:
    """A writer that cannot resume."""

    def __init__(self, writer: Writer) -> None:
        self.reached = Reached()
        self._writer = writer

    @property
    def null_count(self) -> int:
        return self._writer.null_count

    def write(self, table: Table, reached: Reached) -> None:
        self.reached = reached
        self._writer.write(table)

    def finish(self) -> None:
        self._writer.close()


class Parts:
    """Files of a folder, whole one by one, with a journal of what they have."""

    def __init__(self, folder: Path, suffix: str, journal: Journal, nan: str) -> None:
        self._nan = nan
        self._null_count = 0
        self.reached = journal.load()
        with whole_file.naming(folder):
            whole_file.make_folders(folder)
        self._folder, self._suffix, self._journal = folder, suffix, journal
        self._buffer = io.BytesIO()
        self._has_rows = False  # since the last part
        self._writer = self._new_writer()

    def _new_writer(self) -> Writer:
        return make_writer(self._suffix, self._buffer, self._nan)

    def write(self, table: Table, reached: Reached) -> None:
        self._writer.write(table)
        self._has_rows = True
        self.reached = reached._replace(parts=self.reached.parts, columns=self.reached.columns or tuple(table))
        if self._is_full():
            self.save()

    @property
    def null_count(self) -> int:
        return self._null_count + self._writer.null_count

    def _is_full(self) -> bool:
        raise NotImplementedError

    def save(self) -> None:
        """Write the rows since the last part."""
        if self._has_rows:
            self._writer.close()
            name = f"part-{len(self.reached.parts):05}{self._suffix}"
            whole_file.write_whole(self._folder / name, [self._buffer.getvalue()])
            self.reached = self.reached._replace(parts=(*self.reached.parts, name))
            self._buffer.seek(0)
            self._buffer.truncate()
            self._has_rows = False
        self._journal.save(self.reached)


class _Shards(Parts):
    """A folder of shards, which stay as they are: each is a table."""

    def __init__(self, folder: Path, suffix: str, journal: Journal, nan: str) -> None:
        super().__init__(folder, suffix, journal, nan)
        self._written_before = self.reached.written

    def _is_full(self) -> bool:
        return self.reached.written - self._written_before >= SHARD_ROWS

    def save(self) -> None:
        super().save()
        self._null_count = self.null_count
        self._writer, self._written_before = self._new_writer(), self.reached.written

    def finish(self) -> None:
        self.save()


class _OneFile(Parts):
    """Parts of one file, each of the rows of some seconds, which become the file at the end."""

    def __init__(self, path: Path, journal: Journal, nan: str) -> None:
        super().__init__(journal.path.parent, path.suffix.lower(), journal, nan)
        self._path = path
        self._saved = monotonic()

    def _new_writer(self) -> Writer:
        is_csv = self._suffix == ".csv" and self.reached.columns
        return CsvWriter(self._buffer, self.reached.columns) if is_csv else super()._new_writer()

    def _is_full(self) -> bool:
        return monotonic() - self._saved >= SAVING or self._buffer.tell() >= LARGEST_PART

    def save(self) -> None:
        super().save()
        self._saved = monotonic()

    def stop(self) -> None:
        """Save the rows for a run that resumes. A run that wrote none leaves nothing behind."""
        if self.reached.read:
            self.save()
            return
        with suppress(HealdError):  # a folder of others' files stays
            whole_file.remove_folder(self._folder)

    def finish(self) -> None:
        self.save()
        parts = [self._folder / name for name in self.reached.parts]
        whole_file.write_whole(self._path, (part.read_bytes() for part in parts))
        whole_file.remove_all([*parts, self._journal.path])
        whole_file.remove_folder(self._folder)
