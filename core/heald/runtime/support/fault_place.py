"""Fault place: the line of a plugin's own code that raised, read from the traceback. No call pays for it."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType


def raised_at(error: BaseException, module: str) -> str | None:
    """Return "FILE:LINE" of the innermost frame in the top package of `module`, or None when no frame is there."""
    package = module.partition(".")[0]
    position = None
    for frame, line in _frames(error):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == package:
            position = f"{frame.f_code.co_filename}:{line}"
    return position


def with_innermost_place(text: str, error: BaseException) -> str:
    """Return the text, with the line that raised, whoever owns it."""
    positions = [f"{frame.f_code.co_filename}:{line}" for frame, line in _frames(error)]
    return f"{text}, raised at {positions[-1]}" if positions else text


def is_raised_by(error: BaseException, module: str) -> bool:
    """True when a statement in the top package of `module` raised the error itself, not code that it called."""
    names = [str(frame.f_globals.get("__name__", "")) for frame, _ in _frames(error)]
    return bool(names) and names[-1].partition(".")[0] == module.partition(".")[0]


def method_of(error: BaseException, owner: object) -> str | None:
    """Return the name of the method of `owner`'s class that the exception passed through first, or None."""
    methods = {getattr(value, "__code__", None): name for kind in reversed(type(owner).__mro__)
               for name, value in vars(kind).items()}
    names = (methods.get(frame.f_code) for frame, _ in _frames(error))
    return next((name for name in names if name is not None), None)


def with_place(text: str, error: BaseException, module: str) -> str:
    """Return the text, with the line of the plugin's own code that raised where there is one."""
    position = raised_at(error, module)
    return text if position is None else f"{text}, raised at {position}"


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
