"""Another thread, for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def elsewhere(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises in another thread."""
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
