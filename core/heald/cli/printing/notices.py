"""Output to stderr: errors and warnings, a line each, and under an error its hint."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ...errors import (
    LONGEST_TEXT_CHARACTERS,
    HealdError,
    HealdWarning,
    Internal,
    describe_exception,
    display_text,
    mentions,
    printable,
    short_text,
)
from .progress import erase

MAX_ERROR_CHARACTERS = 2200  # of an error's first line: 4 kB with the lines below it
MAX_DETAIL_CHARACTERS = 600  # of each line below it
MAX_TRACEBACK_CHARACTERS = 20_000


def tell_error(error: HealdError) -> None:
    """`error: ...` in one line; below it hint, place in the graph and cause, as far as there are any."""
    where = f"{error.location}: " if error.location is not None else ""
    _tell(f"error: {_line(where + error.message, MAX_ERROR_CHARACTERS)}")
    node_and_op = [part for part in error.place() if not mentions(error.message, part.partition(" ")[2])]
    cause = error.__cause__
    is_told = cause is None or (
        getattr(cause, "strerror", None) or describe_exception(cause).partition(": ")[2]) in error.message
    for title, text in (
        ("hint", error.hint), ("where", ", ".join(node_and_op)),
        ("cause", describe_exception(cause) if cause and not is_told else ""),
    ):
        if text:
            _tell(f"  {title}: {_line(text, MAX_DETAIL_CHARACTERS)}")
    if isinstance(error, Internal) and cause is not None:
        _tell(short_text("".join(traceback.format_exception(cause)).rstrip(), MAX_TRACEBACK_CHARACTERS))


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """While a command runs, warnings are told as `warning: ...`, each text once."""
    with warnings.catch_warnings():
        one_line_from_here()
        yield


def one_line_from_here() -> None:
    """Show warnings on one line each until the process ends, since devices close last. Else as `one_line_warnings`."""
    shown_before: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = _line(str(message), LONGEST_TEXT_CHARACTERS)
        if text not in shown_before:
            shown_before.add(text)
            _tell(f"warning: {text}")

    warnings.simplefilter("always", HealdWarning)
    warnings.showwarning = show


def _tell(text: str) -> None:
    with suppress(OSError):  # stderr is full, or has no reader: the exit status tells
        erase()
        print(printable(text, lines=True), file=sys.stderr, flush=True)


def _line(text: str, largest_characters: int) -> str:
    """The text in one line, at most so many characters of it."""
    return display_text(" ".join(short_text(text, 2 * largest_characters).split()), largest_characters)
