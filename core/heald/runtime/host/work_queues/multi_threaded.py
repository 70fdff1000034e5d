"""The multi-threaded work queue: a fixed pool of threads for non-blocking tasks, and a growing one for blocking tasks.

A thread that waits runs tasks that it added itself and that no other thread has begun. It runs no other tasks: these
might need a lock that it holds, or take longer than it means to wait. The main thread runs none at all. A Ctrl-C can
hit any of its instructions, and a value that it was about to complete would stay pending for the threads that wait for
it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from weakref import finalize

from ....errors import FailedPrecondition, ResourceExhausted
from ...contract.work_queue import Task, WorkQueueConfig
from ...values.async_value import AsyncValue
from .faults import OnError, report_uncaught
from .lifetime import Lifetime
from .waiting import Countdown, Deadline, WaitingThreads
from .worker_pool import WorkerPool

LARGEST_BLOCKING_THREADS = 256  # at most
IDLE_SECONDS = 5.0  # after this time without a task a thread for blocking tasks ends
CLOSE_GRACE_SECONDS = 0.5  # seconds that `close` waits for running tasks


class OwnTasks(deque[Task]):
    """The tasks that a thread has added and no thread has begun. For each of them the pool has one `run_oldest`, which
    any thread may call."""

    def run_oldest(self) -> None:
        try:
            task = self.popleft()
        except IndexError:
            return
        task()


class _ThreadState(threading.local):
    """The relation of the calling thread to a queue. `is_running` is True while it runs a task of the queue. `own` are
    the tasks that it may run while it waits, None for workers and the main thread."""

    def __init__(self) -> None:
        self.is_running = False
        self.own = None if threading.get_ident() == threading.main_thread().ident else OwnTasks()

    def enter(self) -> None:
        """Mark the calling thread as a worker."""
        self.is_running, self.own = True, None


class MultiThreadedWorkQueue:
    """`threads` threads run non-blocking tasks (None: one per core). Up to `blocking_threads` others run blocking
    tasks, and end after `idle_seconds` without one. `on_error` is called with an exception that leaves a task, on the
    task's thread."""

    def __init__(
        self, threads: int | None = None, on_error: OnError = report_uncaught, *,
        blocking_threads: int = LARGEST_BLOCKING_THREADS, idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.parallelism_level = _cores() if threads is None else threads
        self._lifetime = lifetime = Lifetime()
        self._mine = _ThreadState()
        self._quiescing = WaitingThreads()

        def report_error(error: BaseException) -> None:
            if lifetime.end is None:
                on_error(error)

        self._pool = WorkerPool("heald-worker", self.parallelism_level, enter=self._mine.enter,
                                changed=self._quiescing.wake, on_error=report_error)
        self._blocking = WorkerPool("heald-blocking", blocking_threads, enter=self._mine.enter,
                                    changed=self._quiescing.wake, on_error=report_error, idle_seconds=idle_seconds)
        self._lock = threading.Lock()
        self._blocking_added = 0
        self._end = finalize(self, _close, self._pool, self._blocking)  # when collected, or at the process's end

    def add_task(self, task: Task, /) -> None:
        if self._lifetime.end is not None:
            self._lifetime.check()
        own_tasks = self._mine.own
        if own_tasks is not None:
            own_tasks.append(task)
            task = own_tasks.run_oldest
        pool = self._pool
        pool.tasks.append(task)
        if pool.idle or pool.may_grow:
            try:
                pool.wake()
            except ResourceExhausted:
                if _take_back(pool, task):
                    if own_tasks is not None:
                        own_tasks.pop()
                    raise

    def add_blocking_task(self, task: Task, /, allow_queuing: bool) -> bool:
        self._lifetime.check()
        with self._lock:
            self._blocking_added += 1
        pool = self._blocking
        pool.tasks.append(task)
        try:
            return pool.wake() or allow_queuing or not _take_back(pool, task)
        except ResourceExhausted:
            if _take_back(pool, task):
                raise
            return True

    def await_values(self, values: Iterable[AsyncValue], /, timeout: float | None = None) -> bool:
        self._check_waiter()
        waiting = WaitingThreads()
        return self._wait_until(Countdown(values, waiting.wake).is_done, waiting, Deadline(timeout))

    def quiesce(self, timeout: float | None = None) -> bool:
        self._check_waiter()
        return self._wait_until(self._is_quiet, self._quiescing, Deadline(timeout))

    def close(self) -> None:
        if self._lifetime.close():
            self._end()

    def _check_waiter(self) -> None:
        self._lifetime.check()
        if self._mine.is_running:
            raise FailedPrecondition("a task waits for the work queue that runs it",
                                     hint="go on in a callback: value.and_then(...)")

    def _is_quiet(self) -> bool:
        """True when both pools are quiet, and no blocking task was added between the two looks: one might have added
        tasks after the second."""
        added = self._blocking_added
        return self._blocking.is_quiet() and self._pool.is_quiet() and self._blocking_added == added

    def _wait_until(self, done: Callable[[], bool], waiting: WaitingThreads, deadline: Deadline) -> bool:
        if self._mine.own:
            self._run_own(self._mine.own, done, deadline)
        while not done():
            self._lifetime.check()
            if deadline.is_over():
                return False
            waiting.wait_until(done, deadline.slice())
            for pool in (self._pool, self._blocking):
                if pool.tasks and pool.idle:
                    pool.wake()  # a Ctrl-C may have come between adding a task and waking a thread
        return True

    def _run_own(self, own_tasks: OwnTasks, done: Callable[[], bool], deadline: Deadline) -> None:
        self._mine.is_running = True
        try:
            with self._pool.visit():
                while own_tasks and not done() and not deadline.is_over() and self._lifetime.end is None:
                    self._pool.run(own_tasks.run_oldest)
        finally:
            self._mine.is_running = False


def _close(*pools: WorkerPool) -> None:
    end = monotonic() + CLOSE_GRACE_SECONDS
    for thread in [thread for pool in pools for thread in pool.stop()]:
        if thread is not threading.current_thread() and thread.is_alive():
            thread.join(max(0.0, end - monotonic()))


def _take_back(pool: WorkerPool, task: Task) -> bool:
    """Remove a task from the pool. Returns False when a thread that became free has begun it."""
    try:
        pool.tasks.remove(task)
    except ValueError:
        return False
    return True


def _cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def create(config: WorkQueueConfig) -> MultiThreadedWorkQueue:
    return MultiThreadedWorkQueue(config.threads)
