"""Files of text: packed or plain, in the encoding that they state."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from heald.errors import DataLoss, HealdError, InvalidArgument, describe_exception, of_system

from .sources import STDIN

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
         (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_GZIP_MAGIC = b"\x1f\x8b"
LARGEST_RATIO = 1000  # unpacked bytes for each packed byte; gzip itself reaches 1032 on zeros
_LARGEST_FREE = 1 << 26  # unpacked bytes that no ratio bounds


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Yield the file's bytes, unpacked where it is a gzip file. `-` is standard input.

    Raises the errors of the system with the path, DataLoss for a damaged gzip file, InvalidArgument for one that
    unpacks to more than LARGEST_RATIO times its size.
    """
    try:
        if str(path) == STDIN:
            yield sys.stdin.buffer
            return
        with path.open("rb") as file:
            if file.read(2) != _GZIP_MAGIC:
                file.seek(0)
                yield file
                return
            import gzip

            file.seek(0)
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield io.BufferedReader(_Bounded(unpacked, path))
    except HealdError:
        raise
    except OSError as error:
        if getattr(error, "errno", None) is None:  # gzip.BadGzipFile
            raise DataLoss(f"'{path}' is damaged: {error}") from error
        raise of_system(error, path) from error
    except EOFError as error:
        raise DataLoss(f"'{path}' is cut off: {error}") from error


class _Bounded(io.RawIOBase):
    """An unpacked stream that ends with an error where a small file unpacks to a huge one."""

    def __init__(self, unpacked: io.BufferedIOBase, path: Path) -> None:
        self._unpacked = unpacked
        self._path = path
        self._most = max(_LARGEST_FREE, LARGEST_RATIO * path.stat().st_size)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._unpacked.read(len(buffer))
        self._count += len(data)
        if self._count > self._most:
            raise InvalidArgument(f"'{self._path}' unpacks to more than {LARGEST_RATIO:,} times its size",
                                  hint="unpack it first, if it is meant so")
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Yield the file's text. A byte order mark says the encoding, else `encoding` does.

    Raises InvalidArgument for an unknown encoding, and as `open_bytes`.
    """
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise InvalidArgument(f"'{encoding}' is no encoding", hint="utf-8, latin-1, cp1252, utf-16, ...") from None
    with open_bytes(path) as data:
        buffered = data if isinstance(data, io.BufferedReader) else io.BufferedReader(data)  # type: ignore[type-var]
        start = buffered.peek(4)[:4]
        mark, marked = next(((mark, name) for mark, name in MARKS if start.startswith(mark)), (b"", encoding))
        if marked == "utf-8":
            buffered.read(len(mark))
        with io.TextIOWrapper(buffered, marked, newline="") as text:
            try:
                yield text
            except UnicodeDecodeError as error:
                raise DataLoss(f"'{path}' is no text in {marked}: {describe_exception(error)}",
                               hint="--encoding names another encoding") from error
