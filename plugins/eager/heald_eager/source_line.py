"""Source lines: the place in the user's program that called an op.

A call notes the code object and the index of its last instruction. The line is looked up when an error is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from types import CodeType, FrameType
from typing import Any

from heald.errors import HealdError, InvalidArgument, Location
from heald.runtime.host import Host

Place = Callable[[], Location | None]  # the place of a call; a CallSite where the caller says more

_OWN_MODULES = ("heald.", "heald_eager.", "heald_tf_ops.")  # the op set's operators call ops, too


def calling_line(depth: int = 1) -> Callable[[], Location | None]:
    """Return a function that tells the place of the nearest caller outside heald. `depth`: frames to leave out."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OWN_MODULES):
        frame = frame.f_back
    return no_location if frame is None else partial(_location, frame.f_code, frame.f_lasti)


class CallSite:
    """The place of a call that its caller names, and the handler of the call's errors in place of the host's."""

    __slots__ = ("_place", "diagnostics")

    def __init__(self, place: Place, diagnostics: Callable[[HealdError], Any] | None) -> None:
        self._place = place
        self.diagnostics = diagnostics

    def __call__(self) -> Location | None:
        return self._place()


def call_site(location: Any, diagnostics: Any, depth: int) -> Place:
    """The place of a call with these arguments; without a location that of the nearest caller, as `calling_line`.
    Raises InvalidArgument for objects of other types."""
    if location is not None and not isinstance(location, Location):
        raise InvalidArgument(f"location is a {type(location).__name__}, expected a heald.errors.Location",
                              hint="location=heald.errors.Location('model.py', 12)",
                              location=calling_line(depth + 1)())
    if diagnostics is not None and not callable(diagnostics):
        raise InvalidArgument(f"diagnostics is a {type(diagnostics).__name__}, expected a function of an error",
                              location=calling_line(depth + 1)())
    place = calling_line(depth + 1) if location is None else lambda: location
    return place if diagnostics is None else CallSite(place, diagnostics)


def report_error(host: Host, place: Place, error: HealdError) -> None:
    """Pass the error of a call to the call's diagnostics handler, else to the host's."""
    host.report(error, place.diagnostics if isinstance(place, CallSite) else None)


def no_location() -> None:
    """The location of a call without a caller outside heald."""


def _location(code: CodeType, instruction: int) -> Location:
    line = next(islice(code.co_positions(), instruction // 2, None), (code.co_firstlineno,))[0]
    return Location(code.co_filename, line)
