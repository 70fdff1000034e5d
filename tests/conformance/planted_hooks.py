"""A plugin of the tests alone: work queues and allocators, each with one fault that the conformance suite must find."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import numpy as np
from heald.api import AllocatorStats, errors, hookimpl
from heald.runtime.contract.allocator import PlainAllocator
from heald.runtime.host.work_queues.multi_threaded import MultiThreadedWorkQueue

HEALD_API = (1, 3)
QUEUES = {}  # by name: a class
ALLOCATORS = {}


class Queue(MultiThreadedWorkQueue):
    def __init__(self, config):
        super().__init__(config.threads or 2)

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        QUEUES[cls.__name__] = cls


class Allocator(PlainAllocator):
    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        ALLOCATORS[cls.__name__] = cls


class SaysNothingOfThreads(Queue):
    parallelism_level = property(lambda self: 0, lambda self, level: None)


class LosesATask(Queue):
    count = 0

    def add_task(self, task, /):
        self.count += 1
        if self.count != 50:
            super().add_task(task)


class DoublesATask(Queue):
    count = 0

    def add_task(self, task, /):
        self.count += 1
        for _ in range(1 + (self.count == 50)):
            super().add_task(task)


class RunsTasksItself(Queue):
    def add_task(self, task, /):
        task()


class DropsTasksOfTasks(Queue):
    def add_task(self, task, /):
        if threading.current_thread() in _callers(self):
            super().add_task(task)


class IsQuietTooEarly(Queue):
    def quiesce(self, timeout=None):
        return True


class AnswersTooEarly(Queue):
    def await_values(self, values, /, timeout=None):
        return True


class PollsSeldom(Queue):
    def await_values(self, values, /, timeout=None):
        values = list(values)
        time.sleep(0.4)
        return super().await_values(values, timeout)


class ForgetsTimeouts(Queue):
    def await_values(self, values, /, timeout=None):
        return super().await_values(values)


class BlocksForAll(Queue):
    def __init__(self, config):
        super().__init__(config)
        self.one_at_a_time = threading.Lock()

    def add_task(self, task, /):
        def run():
            with self.one_at_a_time:
                task()

        super().add_task(run)

    def add_blocking_task(self, task, /, allow_queuing):
        self.add_task(task)
        return True


class RefusesAndRuns(Queue):
    def add_blocking_task(self, task, /, allow_queuing):
        super().add_blocking_task(task, allow_queuing)
        return False


class HidesErrors(Queue):
    def add_task(self, task, /):
        def run():
            with suppress(ZeroDivisionError):
                task()

        super().add_task(run)


class WaitsForItself(Queue):
    def await_values(self, values, /, timeout=None):
        return all(value.is_available() for value in values)


class TakesTasksWhenClosed(Queue):
    def add_task(self, task, /):
        with suppress(errors.FailedPrecondition):
            super().add_task(task)


class FinishesBeforeItCloses(Queue):
    def close(self):
        self.quiesce()
        super().close()


class LeavesThreads(Queue):
    def add_blocking_task(self, task, /, allow_queuing):
        threading.Thread(target=time.sleep, args=(1.5,), daemon=True).start()
        return super().add_blocking_task(task, allow_queuing)


class HangsInAChild(Queue):
    def quiesce(self, timeout=None):
        try:
            return super().quiesce(timeout)
        except errors.FailedPrecondition:
            time.sleep(2)
            raise


class IsTooShort(Allocator):
    def allocate(self, nbytes, alignment=64):
        return super().allocate(max(nbytes - 1, 0), alignment)


class GivesFloats(Allocator):
    def allocate(self, nbytes, alignment=64):
        return super().allocate(nbytes, alignment).astype(np.float32)


class GivesReadOnly(Allocator):
    def allocate(self, nbytes, alignment=64):
        buffer = super().allocate(nbytes, alignment)
        buffer.flags.writeable = False
        return buffer


class ForgetsAlignment(Allocator):
    def allocate(self, nbytes, alignment=64):
        return super().allocate(nbytes + 1, 64)[1:]


class GivesMemoryTwice(Allocator):
    def __init__(self):
        super().__init__()
        self.arena, self.calls = super().allocate(1 << 22), 0

    def allocate(self, nbytes, alignment=64):
        self.calls += 1
        start = -self.arena.ctypes.data % alignment + self.calls % 7 * 4096
        return self.arena[start : start + nbytes] if start + nbytes <= 1 << 22 else super().allocate(nbytes, alignment)


class TakesBackWhatIsUsed(Allocator):
    """Memory goes to the next request as soon as the whole buffer is gone, and not the last array over it."""

    def __init__(self):
        super().__init__()
        self.memory = super().allocate(1 << 14)

    def allocate(self, nbytes, alignment=64):
        return self.memory[:nbytes] if nbytes == 5000 else super().allocate(nbytes, alignment)


class TakesBackTwice(Allocator):
    def __init__(self):
        super().__init__()
        self.idle = []

    def allocate(self, nbytes, alignment=64):
        return self.idle.pop() if self.idle and nbytes == 5000 else super().allocate(nbytes, alignment)

    def deallocate(self, buffer):
        self.idle.append(buffer)


class RaisesMemoryError(Allocator):
    def allocate(self, nbytes, alignment=64):
        try:
            return super().allocate(nbytes, alignment)
        except errors.ResourceExhausted:
            raise MemoryError from None


class IgnoresItsLimit(Allocator):
    def stats(self):
        return AllocatorStats(limit=1 << 20)


class NeverCountsBack(Allocator):
    used = 0

    def allocate(self, nbytes, alignment=64):
        self.used += nbytes
        return super().allocate(nbytes, alignment)

    def stats(self):
        return AllocatorStats(in_use=self.used)


class HasNoFigures(Allocator):
    def stats(self):
        return None


class IsForOneThread(Allocator):
    def __init__(self):
        super().__init__()
        self.owner = threading.get_ident()

    def allocate(self, nbytes, alignment=64):
        if threading.get_ident() != self.owner:
            raise RuntimeError("another thread's allocator")
        return super().allocate(nbytes, alignment)


def _callers(queue):
    return [thread for thread in threading.enumerate() if "heald conformance" in thread.name
            or thread is threading.main_thread()]


@hookimpl
def heald_work_queues(registry):
    for name, factory in QUEUES.items():
        registry.add(name, factory)
    registry.add("HasNoMethods", lambda config: object())


@hookimpl
def heald_allocators(registry):
    for name, factory in ALLOCATORS.items():
        registry.add(name, factory)
    registry.add("IsNoAllocator", object)
