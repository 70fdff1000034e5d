"""WorkerPool: threads that run the tasks of one deque. A thread is started when a task finds none idle, up to a limit.

Adding a task costs one append while all threads are busy: a thread looks at the deque again before it rests, so only a
resting thread has to be woken. The lock guards the membership of threads, never a task.

Threads are daemons and refer to the pool, not to the queue in front of it. So the queue can be collected, and the
process can end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, RLock, Thread, current_thread
from typing import Any

from ....errors import ResourceExhausted
from ...contract.work_queue import Task
from .faults import OnError, report


class WorkerPool:
    """At most `limit` threads. With `idle_seconds` a thread ends after that many seconds without a task.

    A thread calls `enter` when it starts, and `changed` when it has no more tasks.
    """

    def __init__(
        self, name: str, limit: int, *, enter: Callable[[], None], changed: Callable[[], None], on_error: OnError,
        idle_seconds: float | None = None,
    ) -> None:
        self.tasks: deque[Task] = deque()
        self.idle: deque[Any] = deque()  # one lock per resting thread, released to wake it
        self.may_grow = True
        self._name = name
        self._limit = limit
        self._idle_seconds = -1.0 if idle_seconds is None else idle_seconds  # as in Lock.acquire: -1 is no limit
        self._enter = enter
        self._changed = changed
        self._on_error = on_error
        self._lock = RLock()  # reentrant: the collector may close the pool on a thread that holds it
        self._members: set[Thread] = set()
        self._visitors = 0
        self._started = 0
        self._closed = False

    def wake(self) -> bool:
        """Get a thread for a task that was just appended. Returns False when all threads are busy and the limit is
        reached.

        Raises ResourceExhausted when the pool has no thread and the system starts none.
        """
        try:
            self.idle.pop().release()
        except IndexError:
            return self._grow()
        return True

    def run(self, task: Task) -> None:
        """Call a task; an exception is reported."""
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - a worker outlives every exception
            report(self._on_error, error)

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Count the calling thread as busy while it runs tasks of this pool, although it never rests in it."""
        with self._lock:
            self._visitors += 1
        try:
            yield
        finally:
            with self._lock:
                self._visitors -= 1
            self._changed()

    def is_quiet(self) -> bool:
        """True when no task is queued or running. The result is exact: the lock keeps threads from joining or leaving.
        When the deque was empty and all threads rest afterwards, the tasks taken from it are done."""
        with self._lock:
            return not self.tasks and len(self.idle) == len(self._members) + self._visitors

    def stop(self) -> list[Thread]:
        """Drop the tasks and end the threads, each after its current task. Returns the threads that are ending.

        Takes no lock: in a forked child, or under the collector, its holder may never go on.
        """
        threads = list(self._members)
        self._closed = True
        self.may_grow = False
        self.tasks.clear()
        while self.idle:
            with suppress(IndexError):
                self.idle.pop().release()
        return threads

    def _grow(self) -> bool:
        with self._lock:
            if self._closed or len(self._members) >= self._limit:
                return False
            self._started += 1
            thread = Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True)
            self._members.add(thread)
            self.may_grow = len(self._members) < self._limit
        try:
            thread.start()
        except BaseException as error:
            with self._lock:
                self._members.discard(thread)
                self.may_grow = True
                if not isinstance(error, RuntimeError):
                    raise
                if not self._members:
                    raise ResourceExhausted(f"no thread for the work queue: {error}") from error
            return False
        return True

    def _work(self) -> None:
        lock = Lock()
        lock.acquire()
        with self._lock:  # again: a Ctrl-C in start() removes the thread although it runs
            self._members.add(current_thread())
        self._enter()
        while True:
            self._run_all()
            if not self._rest(lock) and self._leave():
                break
        self._changed()

    def _run_all(self) -> None:
        tasks = self.tasks
        while tasks:
            try:
                task = tasks.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:  # noqa: BLE001 - as `run`, whose call would cost as much as a task
                report(self._on_error, error)

    def _rest(self, lock: Any) -> bool:
        """Rest until woken. Returns False after `idle_seconds` without a task, and when the pool is closed."""
        self.idle.append(lock)
        self._changed()
        if not self.tasks and not self._closed and lock.acquire(timeout=self._idle_seconds):
            return not self._closed
        try:
            self.idle.remove(lock)
        except ValueError:
            lock.acquire()  # a wake-up came just now
            return not self._closed
        return bool(self.tasks) and not self._closed

    def _leave(self) -> bool:
        """Leave the pool. Returns False, and stays, when a task has come that counted on this thread."""
        with self._lock:
            if self.tasks and not self._closed:
                return False
            self._members.discard(current_thread())
            self.may_grow = not self._closed
            return True
