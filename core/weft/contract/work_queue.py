"""ConcurrentWorkQueue: the protocol of what runs tasks, and [work_queue], which chooses one.

A task is a callable without arguments; what it returns is dropped. A non-blocking task never waits for another task,
a device or the outside world: it computes, and hands on what has to wait. Tasks complete AsyncValues, errors included;
an exception that leaves a task has nobody to go to and is a fault, which the queue reports and survives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import InvalidArgument
from ..values.async_value import AsyncValue

MOST_THREADS = 4096  # a mistaken number must not start threads until the machine is out of memory

Task = Callable[[], Any]


@dataclass(frozen=True)
class WorkQueueConfig:
    """[work_queue]. `name`: "multi_threaded", "single_threaded", "seeded" or one that a plugin brings. `threads`: how
    many run non-blocking tasks, none for one per core. `seed`: of the order in which the seeded queue runs tasks."""

    name: str = "multi_threaded"
    threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise InvalidArgument(f"[work_queue] threads must be from 1 to {MOST_THREADS}, not {self.threads}",
                                  hint='name = "single_threaded" runs tasks on the thread that waits')


class ConcurrentWorkQueue(Protocol):
    """Runs tasks, each once. May be called from any thread, by tasks too unless it says otherwise.

    Every method but `close` raises FailedPrecondition at once, never hangs, when the queue is closed and in a forked
    child of the process that made it. A Host makes its queue from `factory(config: WorkQueueConfig)` when it
    is first asked for, and closes it.
    """

    @property
    def parallelism_level(self) -> int:
        """How many non-blocking tasks run at a time: what kernels that split their work divide by."""

    def add_task(self, task: Task, /) -> None:
        """Run a non-blocking task some time. Called by the executor and by kernels; does not block, and does not run
        the task itself. Raises ResourceExhausted when the system starts no thread for it."""

    def add_blocking_task(self, task: Task, /, allow_queuing: bool) -> bool:
        """Run a task that may block, apart from the non-blocking ones where the queue has threads for that.

        Called by kernels that wait for the outside world. Does not block. With `allow_queuing` it may have to wait
        until others have ended, so none of these may depend on it; without, False says that it cannot start now and
        was not taken.
        """

    def await_values(self, values: Iterable[AsyncValue], /, timeout: float | None = None) -> bool:
        """Block until all values are available; False when they are not after `timeout` seconds.

        Called by the thread that drives a step, which may run tasks while it waits. KeyboardInterrupt arrives in the
        main thread within a second. Raises FailedPrecondition when a task of this queue calls it.
        """

    def quiesce(self, timeout: float | None = None) -> bool:
        """Block until no task is queued or running; False when that is not so after `timeout` seconds.

        Called by tests and before a process ends its work. Otherwise as await_values.
        """

    def close(self) -> None:
        """Drop what has not started and end the threads; a task that does not end is not waited for longer than a
        moment, and never keeps the process alive. What it raises from now on, for instance because it adds a task, is
        reported no more. Called once nobody needs results; again, it does nothing."""
