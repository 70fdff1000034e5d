"""Source lines: the place in the user's program that called an op.

A call notes the code object and the index of its last instruction. The line is looked up when an error is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from types import CodeType, FrameType

from heald.errors import Location

_OWN_MODULES = ("heald.", "heald_eager.", "heald_tf_ops.")  # the op set's operators call ops, too


def calling_line(depth: int = 1) -> Callable[[], Location | None]:
    """Return a function that tells the place of the nearest caller outside heald. `depth`: frames to leave out."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OWN_MODULES):
        frame = frame.f_back
    return no_location if frame is None else partial(_location, frame.f_code, frame.f_lasti)


def no_location() -> None:
    """The location of a call without a caller outside heald."""


def _location(code: CodeType, instruction: int) -> Location:
    line = next(islice(code.co_positions(), instruction // 2, None), (code.co_firstlineno,))[0]
    return Location(code.co_filename, line)
