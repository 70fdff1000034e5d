"""The level of a function call: the number of calls around it, whether they are on the stack or wait for it.

Recursion without end needs no deep stack: calls nested deeper than a few return promises, and the step's loop goes on
with the innermost. So each piece of work that may call functions carries the level of its own call: the inner calls of
a flat list have it from the thread, a DataflowRun, a waiting kernel and a task of the work queue remember it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Level(threading.local):
    now = 0  # the level of the call that this thread works for; 0 outside of calls


_LEVEL = _Level()


def current_level() -> int:
    return _LEVEL.now


def at_level(level: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call `work` for a call of this level."""
    before, _LEVEL.now = _LEVEL.now, level
    try:
        return work(*args, **kwargs)
    finally:
        _LEVEL.now = before
