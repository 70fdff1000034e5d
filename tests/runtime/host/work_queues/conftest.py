"""The queues under test, each closed at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from heald.runtime.contract.work_queue import WorkQueueConfig
from heald.runtime.host.work_queues.multi_threaded import MultiThreadedWorkQueue
from heald.runtime.host.work_queues.seeded import SeededWorkQueue
from heald.runtime.host.work_queues.single_threaded import SingleThreadedWorkQueue

from examples.last_in_first_out import LastInFirstOut


def example(**options: Any) -> Any:
    if options:
        pytest.skip("the queue of the example hands what tasks raise to threading.excepthook only")
    return LastInFirstOut(WorkQueueConfig())


QUEUES: dict[str, Callable[..., Any]] = {
    "single_threaded": SingleThreadedWorkQueue,
    "multi_threaded": lambda **options: MultiThreadedWorkQueue(2, **options),
    "one thread": lambda **options: MultiThreadedWorkQueue(1, **options),
    "seeded": lambda **options: SeededWorkQueue(7, **options),
    "of the example": example,
}


@pytest.fixture(params=QUEUES)
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes a queue of each kind in turn. No thread may be left of any."""
    before = set(threading.enumerate())
    queues: list[Any] = []

    def queue(**options: Any) -> Any:
        queues.append(QUEUES[request.param](**options))
        return queues[-1]

    yield queue
    for queue_made in queues:
        queue_made.close()
    assert set(threading.enumerate()) <= before


@pytest.fixture
def queue(make: Callable[..., Any]) -> Any:
    return make()


@pytest.fixture
def threads() -> Iterator[Callable[..., Any]]:
    """`threads(**options)`: a multi-threaded queue."""
    queues: list[MultiThreadedWorkQueue] = []

    def queue(count: int = 2, **options: Any) -> MultiThreadedWorkQueue:
        queues.append(MultiThreadedWorkQueue(count, **options))
        return queues[-1]

    yield queue
    for queue_made in queues:
        queue_made.close()
