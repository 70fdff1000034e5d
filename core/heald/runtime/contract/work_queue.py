"""ConcurrentWorkQueue: the protocol of task queues, and the configuration that chooses one.

A task is a callable without arguments; its return value is dropped. A non-blocking task never waits for another task, a
device or the outside world: it computes and hands waiting work on. Tasks complete AsyncValues, errors included. An
exception that leaves a task has no receiver: it is a fault, which the queue reports and survives.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ...errors import InvalidArgument
from ..support.records import dataclass
from ..values.async_value import AsyncValue

LARGEST_THREAD_COUNT = 4096  # a mistyped number must not start threads until memory runs out

Task = Callable[[], Any]  # a piece of work of a ConcurrentWorkQueue


@dataclass(frozen=True)
class WorkQueueConfig:
    """The section [work_queue], or a section [work_queues.NAME] of a queue that runs ask for by name.

    `name`: "multi_threaded", "single_threaded", "seeded", or a name that a plugin registers.
    `threads`: The number of threads for non-blocking tasks, 1 to MOST_THREADS; None is one per core.
    `seed`: The seed of the order in which the seeded queue runs tasks.
    """

    name: str = "multi_threaded"
    threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= LARGEST_THREAD_COUNT:
            raise InvalidArgument(f"threads must be from 1 to {LARGEST_THREAD_COUNT}, not {self.threads}",
                                  hint='name = "single_threaded" runs tasks on the thread that waits')


class ConcurrentWorkQueue(Protocol):
    """Runs each task once. Any thread may call, tasks included unless a method says otherwise.

    Every method but `close` raises FailedPrecondition when the queue is closed, and in a forked child of the process
    that made it. It raises at once and never hangs. A Host makes its queue from `factory(config: WorkQueueConfig)` when
    the queue is first asked for, and closes it.
    """

    @property
    @abstractmethod
    def parallelism_level(self) -> int:
        """The number of non-blocking tasks that run at a time. Kernels that split their work divide it by this
        number."""

    @abstractmethod
    def add_task(self, task: Task, /) -> None:
        """Run a non-blocking task at some later time.

        The executor and kernels call this method. It does not block, and does not run the task itself. Raises
        ResourceExhausted when the system starts no thread for the task.
        """

    @abstractmethod
    def add_blocking_task(self, task: Task, /, allow_queuing: bool) -> bool:
        """Run a task that may block, apart from the non-blocking tasks where the queue has threads for that.

        Kernels that wait for the outside world call this method. It does not block. With `allow_queuing` the task may
        have to wait until other tasks have ended, so no other task may depend on it. Without `allow_queuing` a result
        of False says that the task cannot start now and was not taken.
        """

    @abstractmethod
    def await_values(self, values: Iterable[AsyncValue], /, timeout: float | None = None) -> bool:
        """Block until all values are available. Returns False when a value is still pending after `timeout` seconds.

        The thread that drives a step calls this method, and may run tasks while it waits. KeyboardInterrupt arrives in
        the main thread within a second. Raises FailedPrecondition when a task of this queue calls it.
        """

    @abstractmethod
    def quiesce(self, timeout: float | None = None) -> bool:
        """Block until no task is queued or running. Returns False when one still is after `timeout` seconds.

        Tests call this method, and processes before they end. In all else it is like `await_values`.
        """

    @abstractmethod
    def close(self) -> None:
        """Drop the tasks that have not started, and end the threads.

        `close` waits only a moment for a task that does not end; such a task never keeps the process alive. Its
        exceptions are no longer reported: it may fail because it adds a task to a closed queue, for instance. The owner
        calls `close` once the results are no longer needed. A second call does nothing.
        """
