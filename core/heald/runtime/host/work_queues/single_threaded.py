"""The single-threaded work queue: tasks run in the order of their arrival, on the thread that waits.

No task runs before a thread waits, and one thread at a time runs tasks: a program has the same sequence of tasks in
every run. Blocking tasks take their turn like the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock, current_thread, get_ident, main_thread

from ....errors import FailedPrecondition
from ...contract.work_queue import Task, WorkQueueConfig
from ...values.async_value import AsyncValue
from .faults import OnError, report, report_uncaught
from .lifetime import Lifetime
from .waiting import Countdown, Deadline, WaitingThreads


class SingleThreadedWorkQueue:
    """`on_error` is called with an exception that leaves a task. A KeyboardInterrupt in the main thread ends the wait
    instead: it is taken for Ctrl-C, and the interrupted task does not run again."""

    parallelism_level = 1

    def __init__(self, on_error: OnError = report_uncaught) -> None:
        self._tasks: deque[Task] = deque()
        self._runner: int | None = None  # the thread that runs tasks now
        self._lock = Lock()
        self._waiting = WaitingThreads()
        self._lifetime = Lifetime()
        self._on_error = on_error

    def add_task(self, task: Task, /) -> None:
        if self._lifetime.end is not None:
            self._lifetime.check()
        self._tasks.append(task)
        if self._waiting.locks:
            self._waiting.wake()

    def add_blocking_task(self, task: Task, /, allow_queuing: bool) -> bool:
        """Queue a task and return True. Without `allow_queuing` refuse it and return False: tasks run only while a
        thread waits."""
        if allow_queuing:
            self.add_task(task)
        else:
            self._lifetime.check()
        return allow_queuing

    def await_values(self, values: Iterable[AsyncValue], /, timeout: float | None = None) -> bool:
        self._check_waiter()
        return self._work_until(Countdown(values, self._waiting.wake).is_done, Deadline(timeout))

    def quiesce(self, timeout: float | None = None) -> bool:
        self._check_waiter()
        return self._work_until(self._is_quiet, Deadline(timeout))

    def close(self) -> None:
        if self._lifetime.close():
            self._tasks.clear()
            self._waiting.wake()

    def _next(self) -> Task:
        """Remove the next task. Raises IndexError when there is none, because the queue is being closed."""
        return self._tasks.popleft()

    def _check_waiter(self) -> None:
        self._lifetime.check()
        if self._runner == get_ident():
            raise FailedPrecondition("a task waits for the work queue that runs it",
                                     hint="go on in a callback: value.and_then(...)")

    def _is_quiet(self) -> bool:
        with self._lock:
            return self._runner is None and not self._tasks

    def _is_free(self) -> bool:
        return self._runner is None and bool(self._tasks)

    def _work_until(self, done: Callable[[], bool], deadline: Deadline) -> bool:
        while not done():
            self._lifetime.check()
            if deadline.is_over():
                return False
            if self._is_free():
                self._run_tasks_as_runner(done, deadline)
            else:
                self._waiting.wait_until(lambda: done() or self._is_free(), deadline.slice())
        return True

    def _run_tasks_as_runner(self, done: Callable[[], bool], deadline: Deadline) -> None:
        me = get_ident()
        try:
            with self._lock:
                if self._runner is None:
                    self._runner = me
            while self._runner == me and self._tasks and not done() and not deadline.is_over():
                self._run_next()
        finally:
            if self._runner == me:
                self._runner = None
                self._waiting.wake()  # another waiting thread may have to run the rest

    def _run_next(self) -> None:
        try:
            task = self._next()
        except IndexError:
            return
        try:
            task()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            if self._lifetime.end is None:
                report(self._on_error, error)


def create(config: WorkQueueConfig) -> SingleThreadedWorkQueue:  # noqa: ARG001 - this queue has no options
    return SingleThreadedWorkQueue()
