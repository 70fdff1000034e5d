"""Texts in chunks, each handled on its own; errors as diagnostics, which are shown or compared with expected ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from heald.api import errors

from .diagnostics import (
    Diagnostic,
    InputChunk,
    diagnostic_mismatches,
    diagnostics_of,
    expected_diagnostics,
    split_input,
)
from .program_reader import InvalidProgram

Handler = Callable[[InputChunk], tuple[str | bytes, list[Diagnostic]]]


def all_diagnostics(error: errors.HealdError, file: str) -> Iterator[Diagnostic]:
    """The diagnostics of an error, and of the errors of other functions."""
    yield from diagnostics_of(error, file)
    if isinstance(error, InvalidProgram):
        for other in error.others:
            yield from diagnostics_of(other, file)


def handle_chunks(text: str, file: str, handler: Handler, *, split: bool, verify: bool,
                  ) -> tuple[list[str | bytes], int]:
    """The output of each chunk, and the exit status of MLIR's tools. Diagnostics are written to stderr.

    `split`: each text between lines `// -----` is a chunk of its own. `verify`: the status tells only if the
    diagnostics are the expected ones, and there is no output.
    """
    outputs: list[str | bytes] = []
    status = 0
    for chunk in split_input(text) if split else [InputChunk(text, 1)]:
        output, chunk_diagnostics = _handle(chunk, file, handler)
        failed = output is None
        if output is not None:
            outputs.append(output)
        if verify:
            chunk_diagnostics = _mismatches(chunk, file, chunk_diagnostics)
            failed = bool(chunk_diagnostics)
        for diagnostic in chunk_diagnostics:
            sys.stderr.write(diagnostic.rendered_text(chunk.text, chunk.line) + "\n")
        status = 1 if failed else status
    return [] if verify else outputs, status


def mismatches_of_text(text: str, file: str, handler: Handler) -> Iterator[tuple[Diagnostic, InputChunk]]:
    """An error for each diagnostic that is missing or unexpected, with its chunk; chunks are between `// -----`."""
    for chunk in split_input(text):
        _, chunk_diagnostics = _handle(chunk, file, handler)
        for mismatch in _mismatches(chunk, file, chunk_diagnostics):
            yield mismatch, chunk


def _handle(chunk: InputChunk, file: str, handler: Handler) -> tuple[str | bytes | None, list[Diagnostic]]:
    """The output of a chunk, None where it has an error, and its diagnostics."""
    try:
        return handler(chunk)
    except errors.HealdError as error:
        return None, list(all_diagnostics(error, file))


def _mismatches(chunk: InputChunk, file: str, chunk_diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    return diagnostic_mismatches(chunk_diagnostics, expected_diagnostics(chunk.text, chunk.line), file)
