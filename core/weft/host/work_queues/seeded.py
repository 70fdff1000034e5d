"""The seeded work queue: explores schedules. The next task is drawn from the queued ones, blocking ones among them.

For one seed, and tasks that are added by one thread and by each other, the order is the same in every run. Tests run a
program under many seeds, to find the order in which it fails.
"""

from __future__ import annotations

from random import Random

from ...contract.work_queue import Task, WorkQueueConfig
from .faults import OnError, uncaught
from .single_threaded import SingleThreadedWorkQueue


class SeededWorkQueue(SingleThreadedWorkQueue):
    """Tasks run on the thread that waits, one at a time."""

    def __init__(self, seed: int, on_error: OnError = uncaught) -> None:
        super().__init__(on_error)
        self._random = Random(seed)  # noqa: S311 - a schedule is no secret

    def _next(self) -> Task:
        self._tasks.rotate(-int(self._random.random() * len(self._tasks)))  # the order of the others means nothing
        return self._tasks.popleft()


def create(config: WorkQueueConfig) -> SeededWorkQueue:
    return SeededWorkQueue(config.seed)
