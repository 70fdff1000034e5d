"""The seeded work queue: explores schedules. The next task is drawn from all queued tasks, blocking ones included.

The order is the same in every run with one seed, when one thread and the tasks themselves add the tasks. Tests run a
program under many seeds to find an order in which it fails.
"""

from __future__ import annotations

from random import Random

from ...contract.work_queue import Task, WorkQueueConfig
from .faults import OnError, report_uncaught
from .single_threaded import SingleThreadedWorkQueue


class SeededWorkQueue(SingleThreadedWorkQueue):
    """Tasks run on the thread that waits, one at a time, in an order drawn from `seed`."""

    def __init__(self, seed: int, on_error: OnError = report_uncaught) -> None:
        super().__init__(on_error)
        self._random = Random(seed)  # noqa: S311 - a schedule is not secret

    def _next(self) -> Task:
        self._tasks.rotate(-int(self._random.random() * len(self._tasks)))  # the order of the rest has no meaning
        return self._tasks.popleft()


def create(config: WorkQueueConfig) -> SeededWorkQueue:
    return SeededWorkQueue(config.seed)
