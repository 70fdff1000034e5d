"""Clusters: the workers of one session, as the session sees them.

An engine implements this protocol: it starts a process for each task, carries calls, and starts dead workers again. It
repeats no call by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol


class Cluster(Protocol):
    """The workers of one session. Any thread may call."""

    def call(self, task: int, method: str, *args: Any) -> Future[Any]:
        """Call a method of a worker. The future has its result, or Unavailable where the worker died."""

    def wait(self, calls: Collection[Future[Any]], seconds: float) -> set[Future[Any]]:
        """Wait until a call is done, for at most `seconds`. Return the calls that are done."""
        return wait(calls, seconds, FIRST_COMPLETED).done

    def close(self) -> None:
        """End all workers. A second call does nothing."""


StartCluster = Callable[[Mapping[int, bytes], str], Cluster]  # the graph of each task, and the workers' config
