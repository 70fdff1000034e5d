"""Calls on threads of a pool, whose results come in the order of their arguments. A few are under way at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def results_in_order(
    function: Callable[[A], R], arguments: Iterator[A], *, threads: int, most_pending: int, name: str
) -> Iterator[R]:
    """Yield the result of each call in turn; an error of a call is raised at its turn. `name`: of the threads."""
    with ThreadPoolExecutor(threads, name) as pool:
        pending: deque[Future[R]] = deque()
        try:
            for argument in arguments:
                pending.append(pool.submit(function, argument))
                if len(pending) >= most_pending:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
