"""The multi-threaded work queue: a fixed pool for non-blocking tasks, and one that grows for blocking tasks.

A thread that waits runs tasks that it added itself, unless others have begun them, and no others: these might want a
lock that it holds, or take longer than it means to wait. The main thread runs none: a Ctrl-C can hit any of its
instructions, and what it was about to complete would never be, for whoever waits for it in other threads.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from weakref import finalize

from ...contract.work_queue import Task, WorkQueueConfig
from ...errors import FailedPrecondition, ResourceExhausted
from ...values.async_value import AsyncValue
from .faults import OnError, uncaught
from .lifetime import Lifetime
from .waiting import Countdown, Deadline, WaitingThreads
from .worker_pool import WorkerPool

BLOCKING_THREADS = 256  # at most
IDLE_SECONDS = 5.0  # after which a thread for blocking tasks ends
GRACE = 0.5  # seconds that closing waits for tasks that are running


class OwnTasks(deque[Task]):
    """What a thread has added and nobody has begun. For each the pool has one `run_oldest`, whoever comes first."""

    def run_oldest(self) -> None:
        try:
            task = self.popleft()
        except IndexError:
            return
        task()


class _Mine(threading.local):
    """What the calling thread is to a queue: it may be running a task, and may run `own` ones while it waits."""

    def __init__(self) -> None:
        self.is_running = False
        self.own = None if threading.get_ident() == threading.main_thread().ident else OwnTasks()

    def enter(self) -> None:
        """The calling thread is a worker."""
        self.is_running, self.own = True, None


class MultiThreadedWorkQueue:
    """`threads` run non-blocking tasks (None: one per core), up to `blocking_threads` others the blocking ones, and
    end after `idle_seconds` without one. `on_error` is called with what a task raises, on its thread."""

    def __init__(
        self, threads: int | None = None, on_error: OnError = uncaught, *,
        blocking_threads: int = BLOCKING_THREADS, idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.parallelism_level = _cores() if threads is None else threads
        self._lifetime = lifetime = Lifetime()
        self._mine = _Mine()
        self._quiescing = WaitingThreads()

        def failed(error: BaseException) -> None:
            if lifetime.end is None:
                on_error(error)

        self._pool = WorkerPool("weft-worker", self.parallelism_level, enter=self._mine.enter,
                                changed=self._quiescing.wake, on_error=failed)
        self._blocking = WorkerPool("weft-blocking", blocking_threads, enter=self._mine.enter,
                                    changed=self._quiescing.wake, on_error=failed, idle_seconds=idle_seconds)
        self._lock = threading.Lock()
        self._blocking_added = 0
        self._end = finalize(self, _close, self._pool, self._blocking)  # dropped, or at the end of the process

    def add_task(self, task: Task, /) -> None:
        if self._lifetime.end is not None:
            self._lifetime.check()
        own = self._mine.own
        if own is not None:
            own.append(task)
            task = own.run_oldest
        pool = self._pool
        pool.tasks.append(task)
        if pool.idle or pool.may_grow:
            try:
                pool.wake()
            except ResourceExhausted:
                if _take_back(pool, task):
                    if own is not None:
                        own.pop()
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
        """Both pools are, and no blocking task has come since the first look to add tasks after the second."""
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
                    pool.wake()  # a Ctrl-C may have come between a task and its wake-up
        return True

    def _run_own(self, own: OwnTasks, done: Callable[[], bool], deadline: Deadline) -> None:
        self._mine.is_running = True
        try:
            with self._pool.visit():
                while own and not done() and not deadline.is_over() and self._lifetime.end is None:
                    self._pool.run(own.run_oldest)
        finally:
            self._mine.is_running = False


def _close(*pools: WorkerPool) -> None:
    end = monotonic() + GRACE
    for thread in [thread for pool in pools for thread in pool.stop()]:
        if thread is not threading.current_thread() and thread.is_alive():
            thread.join(max(0.0, end - monotonic()))


def _take_back(pool: WorkerPool, task: Task) -> bool:
    """Whether a task could be taken out again; not when a thread that became free has begun it."""
    try:
        pool.tasks.remove(task)
    except ValueError:
        return False
    return True


def _cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def create(config: WorkQueueConfig) -> MultiThreadedWorkQueue:
    return MultiThreadedWorkQueue(config.threads)
