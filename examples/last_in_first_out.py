"""A work queue of a third party: the task that was added last runs first.

Waiting threads run the tasks, one thread at a time.

    heald run model.pb --plugin examples/last_in_first_out.py --config lifo.toml

with `[work_queue] name = "last_in_first_out"` in lifo.toml.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from math import inf
from time import monotonic

from heald.api import AsyncValue, ConcurrentWorkQueue, FactoryRegistrar, WorkQueueConfig, errors, hookimpl

HEALD_API = (1, 4)

Task = Callable[[], object]
SLICE = 0.5  # seconds of a wait, where a Ctrl-C does not end it


@hookimpl
def heald_work_queues(registry: FactoryRegistrar) -> None:
    registry.add("last_in_first_out", LastInFirstOut)


class LastInFirstOut(ConcurrentWorkQueue):
    parallelism_level = 1

    def __init__(self, _config: WorkQueueConfig) -> None:
        self._tasks: list[Task] = []
        self._runner: int | None = None  # the thread that runs a task
        self._changed = threading.Condition()
        self._process = os.getpid()
        self._closed = False

    def add_task(self, task: Task, /) -> None:
        self._check()
        self._tasks.append(task)
        self._wake()

    def add_blocking_task(self, task: Task, /, allow_queuing: bool) -> bool:
        self._check()
        if allow_queuing:
            self.add_task(task)
        return allow_queuing  # no task starts before a thread waits

    def await_values(self, values: Iterable[AsyncValue], /, timeout: float | None = None) -> bool:
        self._check()
        pending = [value for value in values if not value.is_available()]
        for value in pending:
            value.and_then(self._wake)
        return self._work_until(lambda: all(value.is_available() for value in pending), timeout)

    def quiesce(self, timeout: float | None = None) -> bool:
        return self._work_until(lambda: self._runner is None and not self._tasks, timeout)

    def close(self) -> None:
        self._closed = True
        self._tasks.clear()
        if self._process == os.getpid():
            self._wake()

    def _check(self) -> None:
        if self._process != os.getpid():  # before any lock: its owner is not in the child, and cannot release it
            raise errors.FailedPrecondition("the work queue belongs to the process that forked this one")
        if self._closed:
            raise errors.FailedPrecondition("the work queue has been closed")

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _work_until(self, done: Callable[[], bool], timeout: float | None) -> bool:
        end = inf if timeout is None else monotonic() + timeout
        self._check()
        if self._runner == threading.get_ident():
            raise errors.FailedPrecondition("a task waits for the work queue that runs it")
        while not done():
            self._check()
            if monotonic() >= end:
                return False
            if not self._run_one():
                with self._changed:
                    if not done() and not self._closed and (self._runner is not None or not self._tasks):
                        self._changed.wait(max(0.0, min(SLICE, end - monotonic())))
        return True

    def _run_one(self) -> bool:
        me = threading.get_ident()
        try:
            with self._changed:
                if self._runner is not None or not self._tasks:
                    return False
                self._runner = me
                task = self._tasks.pop()
            self._run(task)
        finally:
            if self._runner == me:
                self._runner = None
                self._wake()  # another thread may have to go on
        return True

    def _run(self, task: Task) -> None:
        try:
            task()
        except BaseException as error:  # it ends nothing, unless it is a Ctrl-C
            thread = threading.current_thread()
            if isinstance(error, KeyboardInterrupt) and thread is threading.main_thread():
                raise
            if not self._closed:
                threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, thread)))
