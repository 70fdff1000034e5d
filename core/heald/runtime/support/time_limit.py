"""Time limit: a plugin's code runs in a thread of its own, which its caller awaits for so long and no longer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from ...errors import DeadlineExceeded

T = TypeVar("T")


def run_within(seconds: float, what: Callable[[], str], function: Callable[[], T]) -> T:
    """Run a function, and return its result or raise its exception.

    Raises DeadlineExceeded when it takes longer, with the text of `what` as its subject. Its thread is left to itself:
    nothing that it does later may matter.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - raised in the caller
            errors.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), name="heald-time-limit", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors.pop()
    if results:
        return results.pop()
    raise DeadlineExceeded(f"{what()} takes longer than {seconds:g} s")
