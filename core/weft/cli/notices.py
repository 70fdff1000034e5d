"""What goes to stderr: errors and warnings, told in a line each, and under an error what helps to mend it."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import Internal, WeftError, WeftWarning
from .progress import erase


def tell_error(error: WeftError) -> None:
    """`error: ...` in one line; below it hint, place in the graph and cause, as far as there are any."""
    where = f"{error.location}: " if error.location is not None else ""
    _tell(f"error: {where}{_line(error.message)}")
    place = [f"node '{error.node}'"] if error.node is not None else []
    place += [f"op {error.op}"] if error.op is not None else []
    place += [f"device {error.device}"] if error.device is not None else []
    place = [part for part in place if part.partition(" ")[2] not in error.message]
    cause = error.__cause__
    told = str(cause) in error.message if cause is not None else True
    for title, text in (
        ("hint", error.hint), ("where", ", ".join(place)),
        ("cause", "" if told else f"{type(cause).__name__}: {cause}"),
    ):
        if text:
            _tell(f"  {title}: {_line(text)}")
    if isinstance(error, Internal) and cause is not None:
        _tell("".join(traceback.format_exception(cause)).rstrip())


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """While a command runs, warnings are told as `warning: ...`, each text once."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = _line(str(message))
        if text not in told:
            told.add(text)
            _tell(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", WeftWarning)
        warnings.showwarning = show
        yield


def _tell(text: str) -> None:
    erase()
    print(text, file=sys.stderr, flush=True)


def _line(text: str) -> str:
    return " ".join(text.split())
