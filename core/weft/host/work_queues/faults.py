"""Faults: what becomes of an exception that leaves a task. Tasks keep their errors in values; these did not."""

from __future__ import annotations

import threading
from collections.abc import Callable

OnError = Callable[[BaseException], None]


def uncaught(error: BaseException) -> None:
    """What Python does when a thread ends with an exception: `threading.excepthook`, which prints it to stderr unless
    the application has put in its own, and is silent for SystemExit."""
    details = (type(error), error, error.__traceback__, threading.current_thread())
    threading.excepthook(threading.ExceptHookArgs(details))


def report(on_error: OnError, error: BaseException) -> None:
    """Hand the error of a task to the queue's handler; one that fails does not end the thread either."""
    try:
        on_error(error)
    except BaseException as second:  # noqa: BLE001 - a worker outlives whatever is raised in it
        uncaught(second)
