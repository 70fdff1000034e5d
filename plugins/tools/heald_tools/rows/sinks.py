"""Places of a table: standard output, a file, or a folder of shards.

A folder gets shards and their journal. A file of CSV or JSON lines is written in parts, into the folder FILE.parts with
its journal, and made of them at the end. A run that was cut off resumes from either, and the bytes are those of a run
that was not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import BinaryIO, Protocol

from heald.errors import HealdError, Unimplemented
from heald.runtime.support import whole_file

from . import sound_files
from .journal import Journal, Reached
from .output_places import GROWING, STDOUT, folder_of, is_folder, is_of_sounds, shard_suffix
from .results import Table
from .writers import CsvWriter, Writer, make_writer

SHARD_ROWS = 10_000
SAVING = 2.0  # seconds of a part
CHUNK = 1 << 20  # bytes that are copied together


class Sink(Protocol):
    """A place that takes rows. `reached`: the state that the run resumes from. `null_count`: values that JSON lacks."""

    reached: Reached

    @property
    def null_count(self) -> int: ...

    def write(self, table: Table, reached: Reached) -> None:
        """Write rows, and take the state behind them."""


@contextmanager
def open_sink(output: str, journal: Journal | None, *, json_lines: bool, nan: str, sound_rate: int | None = None,
              ) -> Iterator[Sink]:
    """Yield the place of a table. An error in the block leaves the table unfinished."""
    if output == STDOUT:
        with _finishing(_Stream(make_writer(".jsonl" if json_lines else ".csv", sys.stdout.buffer, nan))) as stream:
            yield stream
        return
    if sound_rate is not None and is_of_sounds(output):
        yield sound_files.SoundFiles(folder_of(output), sound_rate)
        return
    if is_folder(output):
        if journal is None:
            raise Unimplemented("rows of standard input do not become shards", hint="give one file as --output")
        with _finishing(_Shards(folder_of(output), shard_suffix(output), journal, nan)) as shards:
            yield shards
        return
    path = Path(output)
    if path.suffix.lower() not in GROWING or journal is None:
        suffix = path.suffix.lower()
        with whole_file.writing_file(path) as out, _finishing(_Stream(make_writer(suffix, out, nan))) as stream:
            yield stream
        return
    with _finishing(_OneFile(path, journal, nan)) as parts:
        yield parts


class _Finishable(Sink, Protocol):
    def finish(self) -> None:
        """Write the rest."""

    def stop(self, error: BaseException) -> None:
        """End without the rest."""


@contextmanager
def _finishing(sink: _Finishable) -> Iterator[Sink]:
    try:
        yield sink
    except BaseException as error:
        sink.stop(error)
        raise
    sink.finish()


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

    def stop(self, _: BaseException) -> None:
        _close_anyhow(self._writer)


def _close_anyhow(writer: Writer) -> None:
    """Close a writer whose file is dropped: pyarrow's would write to the closed file later, and fail."""
    with suppress(Exception):  # the error that ends the run states the cause
        writer.close()


class Parts:
    """Files of a folder, whole one by one, with a journal of what they have.

    Rows go to the file of their part at once, so that memory does not grow with a part. The file gets its name when the
    part is saved. An error may come in the middle of a write: such a part is dropped, and a run that resumes writes it
    again.
    """

    def __init__(self, folder: Path, suffix: str, journal: Journal, nan: str) -> None:
        self._nan = nan
        self._null_count = 0  # of saved parts
        self.reached = journal.load()
        with whole_file.naming(folder):
            whole_file.make_folders(folder)
        self._folder, self._suffix, self._journal = folder, suffix, journal
        self._file = ExitStack()
        self._writer: Writer | None = None  # of the part that is being written
        self._is_torn = False

    def _new_writer(self, out: BinaryIO) -> Writer:
        return make_writer(self._suffix, out, self._nan)

    @property
    def _part_name(self) -> str:
        return f"part-{len(self.reached.parts):05}{self._suffix}"

    def write(self, table: Table, reached: Reached) -> None:
        self._is_torn = True
        if self._writer is None:
            out = self._file.enter_context(whole_file.writing_file(self._folder / self._part_name))
            self._writer = self._new_writer(out)
        self._writer.write(table)
        self.reached = reached._replace(parts=self.reached.parts, columns=self.reached.columns or tuple(table))
        self._is_torn = False
        if self._is_full():
            self.save()

    @property
    def null_count(self) -> int:
        return self._null_count + (self._writer.null_count if self._writer is not None else 0)

    def _is_full(self) -> bool:
        raise NotImplementedError

    def save(self) -> None:
        """Name the part of the rows since the last one."""
        if self._writer is not None:
            self._is_torn = True
            name = self._part_name
            self._writer.close()
            self._file.close()
            self._null_count, self._writer = self.null_count, None
            self.reached = self.reached._replace(parts=(*self.reached.parts, name))
            self._is_torn = False
        self._journal.save(self.reached)

    def stop(self, error: BaseException) -> None:
        """Drop the part that is being written."""
        if self._writer is not None:
            _close_anyhow(self._writer)
        self._file.__exit__(type(error), error, error.__traceback__)

    def finish(self) -> None:
        self.save()


class _Shards(Parts):
    """A folder of shards, which stay as they are: each is a table."""

    def __init__(self, folder: Path, suffix: str, journal: Journal, nan: str) -> None:
        super().__init__(folder, suffix, journal, nan)
        self._written_before = self.reached.written

    def _is_full(self) -> bool:
        return self.reached.written - self._written_before >= SHARD_ROWS

    def save(self) -> None:
        super().save()
        self._written_before = self.reached.written


class _OneFile(Parts):
    """Parts of one file, each of the rows of some seconds, which become the file at the end."""

    def __init__(self, path: Path, journal: Journal, nan: str) -> None:
        super().__init__(journal.path.parent, path.suffix.lower(), journal, nan)
        self._path = path
        self._saved = monotonic()

    def _new_writer(self, out: BinaryIO) -> Writer:
        is_csv = self._suffix == ".csv" and self.reached.columns
        return CsvWriter(out, self.reached.columns) if is_csv else super()._new_writer(out)

    def _is_full(self) -> bool:
        return monotonic() - self._saved >= SAVING

    def save(self) -> None:
        super().save()
        self._saved = monotonic()

    def stop(self, error: BaseException) -> None:
        """Save the rows for a run that resumes. A run that wrote none leaves nothing behind."""
        if self._is_torn:
            super().stop(error)
        elif self.reached.read:
            self.save()
        if not self.reached.read:
            with suppress(HealdError):  # a folder of others' files stays
                whole_file.remove_folder(self._folder)

    def finish(self) -> None:
        """Write the file. The journal goes first: parts without it are of no run, and the next run removes them."""
        self.save()
        whole_file.write_whole(self._path, _chunks_of(self._folder / name for name in self.reached.parts))
        whole_file.remove_all([self._journal.path, *self._folder.glob(f"part-*{self._suffix}")])
        whole_file.remove_folder(self._folder)


def _chunks_of(files: Iterable[Path]) -> Iterator[bytes]:
    """The bytes of files, one behind the other."""
    for path in files:
        with whole_file.naming(path), path.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
