"""Tests in several threads: a failure in one of them fails the test."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_threads(work: Callable[[int], object], count: int = 4) -> None:
    errors: list[BaseException] = []

    def run_guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=run_guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
