"""Faults: the report of exceptions that leave tasks. Tasks keep their errors in values; these exceptions escaped."""

from __future__ import annotations

import threading
from collections.abc import Callable

OnError = Callable[[BaseException], None]


def report_uncaught(error: BaseException) -> None:
    """Call `threading.excepthook`, as Python does when a thread ends with an exception. It prints to stderr unless the
    application has replaced it, and is silent for SystemExit."""
    details = (type(error), error, error.__traceback__, threading.current_thread())
    threading.excepthook(threading.ExceptHookArgs(details))


def report(on_error: OnError, error: BaseException) -> None:
    """Pass the error of a task to the queue's handler. An exception of the handler does not end the thread either."""
    try:
        on_error(error)
    except BaseException as second:  # noqa: BLE001 - a worker outlives every exception
        report_uncaught(second)
