"""A folder of pictures as the place of a run: each row becomes a picture, named after the row's file.

Pictures are encoded by a few threads and written whole. The journal says how far the run has come, and goes when the
run ends; a run that was cut off writes the pictures since the last save again.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

from heald.runtime.support import whole_file

from .journal import Journal, Reached
from .output_places import PICTURE_SUFFIXES, folder_of
from .picture_names import PictureNames
from .row_batch import RowBatch
from .sinks import SAVING

_JPEG_QUALITY = 95


class Painter(Protocol):
    """Makes the pictures of a row. `state`: The choice of the first batch, which a resumed run takes over."""

    @property
    def state(self) -> tuple[str, ...]: ...

    def restore(self, state: Sequence[str]) -> None:
        """Take the choice of an earlier run."""

    def choose(self, outputs: Mapping[str, Any]) -> None:
        """See the first batch. Raises InvalidArgument where no picture can be made of it."""

    def pictures_of(self, file: str, outputs: Mapping[str, Any], row: int) -> list[tuple[str, Any]]:
        """Pictures of Pillow, each with the part of its name that tells it from the row's others."""


class _Encoded(NamedTuple):
    stem: str
    content: bytes


class PictureSink:
    """The pictures of all rows. `reached`: the state that the run resumes from."""

    null_count = 0

    def __init__(self, folder: Path, suffix: str, journal: Journal | None, names: PictureNames, painter: Painter,
                 ) -> None:
        self.reached = journal.load() if journal is not None else Reached()
        painter.restore(self.reached.columns)
        self._has_chosen = bool(self.reached.columns)
        with whole_file.naming(folder):
            whole_file.make_folders(folder)
        self._folder, self._suffix, self._journal = folder, suffix, journal
        self._names, self._painter = names, painter
        self._saved = monotonic()
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, "heald-encode")

    def write_pictures(self, rows: RowBatch, outputs: Mapping[str, Any], reached: Reached) -> None:
        """Write the pictures of a batch. Raises InvalidArgument for outputs that are no pictures."""
        if not self._has_chosen:
            self._painter.choose(outputs)
            self._has_chosen = True
        by_folder: dict[Path, list[_Encoded]] = {}
        for encoded in self._pool.map(lambda row: self._encode_row(rows, outputs, row), range(len(rows))):
            for picture in encoded:
                by_folder.setdefault((self._folder / picture.stem).parent, []).append(picture)
        for folder, pictures in by_folder.items():
            with whole_file.naming(folder):
                whole_file.make_folders(folder)
            with whole_file.writing_files(folder) as files:
                for picture in pictures:
                    with files.create(f"{Path(picture.stem).name}{self._suffix}") as out:
                        out.write(picture.content)
        self.reached = reached._replace(columns=self._painter.state)
        if monotonic() - self._saved >= SAVING:
            self.save()

    def _encode_row(self, rows: RowBatch, outputs: Mapping[str, Any], row: int) -> list[_Encoded]:
        file = str(rows.index["file"][row])
        number = int(rows.index["row"][row]) if "row" in rows.index else None
        return [_Encoded(self._names.stem_of(file, number, name), _encode(picture, PICTURE_SUFFIXES[self._suffix]))
                for name, picture in self._painter.pictures_of(file, outputs, row)]

    def save(self) -> None:
        if self._journal is not None:
            self._journal.save(self.reached)
        self._saved = monotonic()

    def finish(self) -> None:
        if self._journal is not None:
            whole_file.remove_all([self._journal.path])

    def close(self) -> None:
        self._pool.shutdown()


@contextmanager
def open_pictures(output: str, journal: Journal | None, names: PictureNames, painter: Painter) -> Iterator[PictureSink]:
    """Yield the folder of an output such as out/*.png. An error in the block leaves the journal, to resume from."""
    names.check_targets(output, folder_of(output), Path(output).suffix)
    sink = PictureSink(folder_of(output), Path(output).suffix.lower(), journal, names, painter)
    try:
        yield sink
    except BaseException:
        if sink.reached.read:
            sink.save()
        raise
    finally:
        sink.close()
    sink.finish()


def _encode(picture: Any, name: str) -> bytes:
    content = io.BytesIO()
    if name == "JPEG":
        picture.convert("RGB").save(content, name, quality=_JPEG_QUALITY)
    else:
        picture.save(content, name)
    return content.getvalue()
