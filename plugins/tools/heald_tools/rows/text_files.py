"""Files of text: packed or plain, in the encoding that they state."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from heald.errors import DataLoss, HealdError, InvalidArgument, ResourceExhausted, describe_exception, of_system

from .sources import STDIN

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
         (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_GZIP_MAGIC = b"\x1f\x8b"
LONGEST_LINE = 1 << 26  # characters
LARGEST_RATIO = 1000  # unpacked bytes for each packed byte; gzip itself reaches 1032 on zeros
LARGEST_FREE = 1 << 26  # unpacked bytes that no ratio bounds


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
                yield io.BufferedReader(BoundedStream(unpacked, path))
    except HealdError:
        raise
    except OSError as error:
        if getattr(error, "errno", None) is None:  # gzip.BadGzipFile
            raise DataLoss(f"'{path}' is damaged: {error}") from error
        raise of_system(error, path) from error
    except EOFError as error:
        raise DataLoss(f"'{path}' is cut off: {error}") from error


class BoundedStream(io.RawIOBase):
    """An unpacked stream that ends with an error where a small file unpacks to a huge one."""

    def __init__(self, unpacked: io.BufferedIOBase, path: Path) -> None:
        self._unpacked = unpacked
        self._path = path
        self._most = max(LARGEST_FREE, LARGEST_RATIO * path.stat().st_size)
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


class Prefixed(io.RawIOBase):
    """The bytes that were read already, and then the rest of their file."""

    def __init__(self, prefix: bytes, file: BinaryIO) -> None:
        self._prefix = memoryview(prefix)
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._prefix[:len(buffer)] or self._file.read(len(buffer))
        self._prefix = self._prefix[len(data):]
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Yield the file's text. A byte order mark says the encoding, else `encoding` does.

    Raises as `open_encoded`.
    """
    with open_encoded(path, encoding) as (data, name), io.TextIOWrapper(data, name, newline="") as text:
        yield text


@contextmanager
def open_encoded(path: Path, encoding: str) -> Iterator[tuple[io.BufferedReader, str]]:
    """Yield the file's bytes and their encoding, which a byte order mark or else `encoding` says.

    Raises InvalidArgument for an unknown encoding, DataLoss where the block meets bytes of another, and as
    `open_bytes`.
    """
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
    except (LookupError, ValueError):  # unknown, or of bytes, such as base64
        raise InvalidArgument(f"'{encoding}' is no encoding", hint="utf-8, latin-1, cp1252, utf-16, ...") from None
    with open_bytes(path) as data:
        buffered: Any = data if isinstance(data, io.BufferedReader) else io.BufferedReader(data)
        start = buffered.peek(4)[:4]
        mark, name = next(((mark, name) for mark, name in MARKS if start.startswith(mark)), (b"", encoding))
        if mark and name == "utf-8":
            buffered.read(len(mark))
        try:
            yield buffered, name
        except UnicodeError as error:
            raise DataLoss(f"'{path}' is no text in {name}: {describe_exception(error)}",
                           hint="--encoding names another encoding") from error


def read_lines_of(text: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a text with their ends. Raises ResourceExhausted for one that is longer than LONGEST_LINE."""
    number = 1
    while line := text.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(("\n", "\r")):
            raise ResourceExhausted(f"'{path}', line {number:,}: more than {LONGEST_LINE:,} characters")
        yield line
        number += 1
