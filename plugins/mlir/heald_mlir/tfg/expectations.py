"""Annotated texts: the errors of each piece against the comments that expect them, as MLIR's -verify-diagnostics.

`diagnostics` has the rules of the comments, and `diagnosed` compares; both serve the tools of host programs, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heald.api import errors

from ..diagnosed import mismatches_of_text
from ..diagnostics import Diagnostic, InputChunk
from ..text_file import decode_text
from .text_file import loads


def read_annotated(path: str) -> str:
    """The text of a file. Raises NotFound and others for a file that cannot be read, MalformedText for one of bytes."""
    try:
        return decode_text(Path(path).read_bytes(), path)
    except OSError as error:
        raise errors.of_system(error, path) from error


def unmet_expectations(text: str, file: str) -> Iterator[tuple[Diagnostic, InputChunk]]:
    """An error for each diagnostic that is missing or unexpected, with the piece of the text that has it.

    Pieces stand between lines `// -----`. Raises InvalidArgument for a comment whose pattern is no regular expression.
    """
    def read_piece(piece: InputChunk) -> tuple[str, list[Diagnostic]]:
        loads("\n" * (piece.line - 1) + piece.text, file=file)  # locations count the lines of the whole text
        return "", []

    try:
        yield from mismatches_of_text(text, file, read_piece)
    except errors.InvalidArgument as error:
        raise error.at(location=errors.Location(file)) from error.__cause__
