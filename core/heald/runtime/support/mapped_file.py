"""Bytes of files: small files are read, large files are mapped. A mapped file that changed in place is an error.

A map shows the current content of its file. After a truncation the next access ends the process (SIGBUS); an overwrite
changes weights. Each map therefore keeps a descriptor of its file, and compares size and modification time before the
bytes are used. Replacing the file by rename is permitted: it leaves the mapped content unchanged.
"""

from __future__ import annotations

import mmap
import os
import stat
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...errors import DataLoss, FailedPrecondition, InvalidArgument, Location, ResourceExhausted

Buffer = bytes | memoryview

MAPPED_FROM_BYTES = 1 << 20  # bytes; smaller files are read, which takes less than a millisecond
VIEWED_FROM_BYTES = 1 << 16  # bytes; smaller pieces of a mapped file are copied, so that runs need not look at the file
_OPEN_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_REMEDY = "load it again; replace files by rename, or load them with mmap=False"

_State = tuple[int, int]  # size in bytes, modification time in nanoseconds


class MappedFile(mmap.mmap):
    """A read-only map of a whole file that detects later changes of the file."""

    _path: Path
    _state: _State
    _descriptor: int

    @classmethod
    def of(cls, descriptor: int, path: Path) -> MappedFile:
        """The map of an open, non-empty file. The map closes the descriptor when it is collected. Raises OSError."""
        state = _state(descriptor)
        mapped = cls(descriptor, state[0], access=mmap.ACCESS_READ)
        mapped._path, mapped._state, mapped._descriptor = path, state, descriptor
        weakref.finalize(mapped, os.close, descriptor).atexit = False
        return mapped

    def check(self) -> None:
        """Raises FailedPrecondition when the file was written or truncated since it was mapped."""
        try:
            state = _state(self._descriptor)
        except OSError as error:
            raise self._change_error(f"cannot be examined any more: {error.strerror}") from error
        if state != self._state:
            before, now = self._state[0], state[0]
            raise self._change_error(
                f"was changed in place after it was loaded: it had {before} bytes, now it has {now}" if now != before
                else "was written after it was loaded: its modification time has changed")

    def _change_error(self, what: str) -> FailedPrecondition:
        return FailedPrecondition(f"the file {what}", location=Location(str(self._path)), hint=_REMEDY)


def contents(path: Path, *, mapped: bool = True) -> memoryview:
    """The bytes of a file: a map of a large file if `mapped`, else a copy. Raises as `read`."""
    descriptor, size = _open(path)
    try:
        if mapped and size >= MAPPED_FROM_BYTES:
            return memoryview(MappedFile.of(descriptor, path))
    except BaseException:
        os.close(descriptor)
        raise
    return memoryview(_read(descriptor))


def read(path: Path) -> bytes:
    """A copy of all bytes of a file.

    Raises InvalidArgument for pipes and devices, DataLoss for a file that changes while it is read, ResourceExhausted
    for a file larger than memory, OSError.
    """
    return _read(_open(path)[0])


def head(path: Path, count: int) -> bytes:
    """The first bytes of a file, at most `count`. Raises InvalidArgument for pipes and devices, OSError."""
    with os.fdopen(_open(path)[0], "rb") as file:
        return file.read(count)


def _open(path: Path) -> tuple[int, int]:
    """A descriptor of the regular file at `path`, and its size. Opening a pipe does not wait for its writer."""
    descriptor = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise InvalidArgument("this is not a regular file")
    return descriptor, status.st_size


def _state(descriptor: int) -> _State:
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


def _read(descriptor: int) -> bytes:
    """Read all bytes of an open file, and close it."""
    with open(descriptor, "rb") as file:
        before = _state(descriptor)
        try:
            data = file.read(before[0] + 1)  # one byte more shows growth, and bounds an endless writer
        except MemoryError:
            raise ResourceExhausted(f"no memory to read a file of {before[0]} bytes",
                                    hint="mmap=True maps it") from None
        if len(data) != before[0] or _state(descriptor) != before:
            raise DataLoss(f"the file changed while it was read: it had {before[0]} bytes, {len(data)} were read",
                           hint="load it again; replace files by rename")
    return data


def lasting_bytes(data: Buffer, start: int, stop: int) -> Buffer:
    """The bytes at [start, stop) for later use: a small piece is copied, a large one stays a view."""
    part = data[start:stop]
    return part if stop - start >= VIEWED_FROM_BYTES else bytes(part)


def file_behind(value: Any) -> MappedFile | None:
    """The mapped file under a buffer or an array, or None."""
    while (base := getattr(value, "base", None)) is not None:
        value = base
    file = getattr(value, "obj", None)
    return file if isinstance(file, MappedFile) else None


def check_unchanged(values: Iterable[Any]) -> None:
    """Raises FailedPrecondition when a mapped file under one of these buffers or arrays has changed."""
    for file in set(map(file_behind, values)):
        if file is not None:
            file.check()
