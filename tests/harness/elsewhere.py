"""Another thread, for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def run_in_thread(work: Callable[[], Any]) -> Any:
    """Run `work` in another thread: return its result, or raise its exception."""
    outcome: list[Any] = []

    def target() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001
            outcome.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join(10)
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
