"""Standard streams: errors of standard output name it, and closed streams stay closed for everything else.

A process that was started with a closed descriptor gives its number to the next file that it opens: text for the
terminal, also that of libraries, would end in that file. So closed descriptors are filled first. Python's object of a
closed stream is None, which no writer expects.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any, TextIO

NAME = "standard output"
_FLAGS_BY_DESCRIPTOR = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)  # by descriptor: to write to a closed output is an error


class _Output(FileIO):
    """The file of standard output, whose errors name it as their file."""

    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, NAME) from None


@contextmanager
def standard_streams() -> Iterator[None]:
    """Within the block `sys.stdout` is a text stream that writes every character and names itself in its errors."""
    _fill_closed()
    before = sys.stdout
    if isinstance(before, TextIOWrapper):
        before.reconfigure(errors="backslashreplace")  # names may have letters that the terminal lacks
        raw = getattr(before.buffer, "raw", before.buffer)  # with `python -u` the buffer is the file itself
        if isinstance(raw, FileIO):
            before.flush()
            output = BufferedWriter(_Output(before.fileno(), "wb", closefd=False))
            sys.stdout = TextIOWrapper(output, before.encoding, "backslashreplace",
                                       line_buffering=before.line_buffering or raw is before.buffer)
    try:
        yield
    finally:
        sys.stdout = before
        try:
            sys.stderr.flush()
        except OSError:  # stderr is full, or has no reader: the exit status tells
            drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Write the content of a stream's buffers to nowhere: the interpreter flushes them at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    stream.flush()


def _fill_closed() -> None:
    for number, flags in enumerate(_FLAGS_BY_DESCRIPTOR):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, flags)  # the lowest free number
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8", errors="backslashreplace",  # noqa: SIM115
                                    closefd=False))
