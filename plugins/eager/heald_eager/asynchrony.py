"""Asynchrony: which calls on host memory return before their kernel has run, and the lane in which these kernels run.

A call is deferred when its kernel is long: the shortest of its runs took `LONG_CALL_SECONDS` or more. The hand-over to
another thread takes 17 us, and each op on a pending input 30 to 53 us where it takes 1.5 on an available one. Ten such
ops cost half a millisecond, so a kernel has to be longer than that. A first run may load a library, which takes 20 ms,
and another process may take the core, so the first times decide nothing: before the `TRUSTED_RUNS`, a call is deferred
when its tensors are large. The time stands in the bound op, which all calls of one op and shapes share.

A first large call returns before its op is bound, too: importing and preparing kernels takes 2 ms. Its thread leaves
the interpreter to the caller first.

Calls with effects run in the caller: their order is that of the program, and an op without results raises its error.

A long kernel fills all cores by itself, so that two of them at a time would only disturb each other. They run in one
lane, in program order. A kernel never waits for another call, so the lane always moves on. A short call whose inputs
the lane completes runs on the lane's thread: it would wait longer for a thread of its own.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import sleep
from typing import Literal

from heald.api import TensorMetadata, inherited
from heald.errors import FailedPrecondition, HealdError
from heald.runtime.host import Host

from .bound_op import BoundOp

Task = Callable[[], object]
Mode = Literal["auto", "never", "always"]
LONG_CALL_SECONDS = 1e-3  # of a kernel: the issue of ten small ops on its result takes half of this
TRUSTED_RUNS = 4  # runs from which on the shortest tells the length of a kernel
LARGE_CALL_BYTES = 1 << 20  # of the tensors of a call before these runs
CALLER_SECONDS = 2e-4  # until a caller has returned that has just started a thread
COPIED_BYTES_PER_SECOND = 2e9  # of arrays of the caller, which a deferred call copies


class Asynchrony:
    """The decision for the calls of one runtime. Any thread may call.

    `mode`: as [eager] asynchronous.
    """

    def __init__(self, host: Host, mode: Mode) -> None:
        self._host = host
        self._mode = mode
        self.lane = Lane(host)

    def is_long(self, bound: BoundOp) -> bool:
        """True when calls of this bound op are deferred, whatever the size of their tensors."""
        if self._mode == "auto":
            return bound.is_deferrable and bound.timed_runs >= TRUSTED_RUNS and bound.least_seconds >= LONG_CALL_SECONDS
        return self._mode == "always" and bound.is_deferrable

    def is_short(self, bound: BoundOp) -> bool:
        """True when no call of this bound op is deferred. Neither long nor short: its time is not known yet."""
        if self._mode == "auto":
            return not bound.is_deferrable or bound.least_seconds < LONG_CALL_SECONDS
        return self._mode == "never" or not bound.is_deferrable

    def may_defer_unbound(self) -> bool:
        """True where a large call returns before its op is bound: where size alone decides about a first call."""
        return self._mode == "auto"

    def defers(self, bound: BoundOp, inputs: Sequence[TensorMetadata], borrowed_bytes: int) -> bool:
        """True for a call that returns before its kernel has run. `borrowed_bytes`: of the arrays that it would copy.

        False on a thread that may not wait for the work queue: a task of the queue, or a forked child.
        """
        if self.is_short(bound):
            return False
        if self._mode == "auto":
            if bound.timed_runs < TRUSTED_RUNS and not are_large((*inputs, *bound.metas)):
                return False
            if bound.least_seconds < LONG_CALL_SECONDS + borrowed_bytes / COPIED_BYTES_PER_SECOND:
                return False
        return self.may_wait()

    def adder_of(self, metas: Sequence[TensorMetadata], *, has_effects: bool) -> Callable[[Task], object]:
        """The function that takes the task of a call on pending inputs: the lane's for large tensors."""
        if self._mode == "never" or has_effects or not are_large(metas):
            return self._host.work_queue.add_task
        return self.lane.add

    def runs_here(self, metas: Sequence[TensorMetadata], *, has_effects: bool) -> bool:
        """True for a call that the calling thread, if it is the lane's, runs itself: a short one by its tensors."""
        return self.lane.is_current() and not has_effects and all(m.is_static for m in metas) and not are_large(metas)

    def may_wait(self) -> bool:
        """False on a thread that the work queue refuses as a waiter: one that runs its tasks, or a forked child's."""
        if not self._host.has_work_queue:
            return True  # the lane makes it
        try:
            self._host.work_queue.await_values((), 0)
        except FailedPrecondition:
            return False
        return True


class Lane:
    """Tasks that run one after the other, in the order in which they were added, as tasks of the work queue."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: deque[Task] = deque()
        self._is_running = False
        self._lock = threading.Lock()
        self._local = threading.local()
        inherited.add(self)

    def forked(self) -> None:
        self._lock = threading.Lock()
        self._tasks.clear()
        self._is_running = False

    def is_current(self) -> bool:
        """True on the thread that runs a task of the lane."""
        return getattr(self._local, "is_current", False)

    def add(self, task: Task) -> None:
        """Run a task after the earlier ones. Raises as the queue's `add_task`."""
        with self._lock:
            self._tasks.append(task)
            if self._is_running:
                return
            self._is_running = True
        self._add_turn()

    def add_after_caller(self, task: Task) -> None:
        """As `add`, for a task that begins with Python work. It leaves the interpreter to the caller for a moment: a
        new thread would keep it for up to 5 ms."""
        self.add(partial(_run_after_caller, task))

    def _add_turn(self) -> None:
        try:
            self._host.work_queue.add_task(partial(_run_next_task, weakref.ref(self)))
        except HealdError:
            with self._lock:
                self._is_running = False
            raise

    def run_next(self) -> None:
        try:
            task = self._tasks.popleft()
            self._local.is_current = True
            task()
        finally:
            self._local.is_current = False
            with self._lock:
                self._is_running = bool(self._tasks)
                is_last = not self._is_running
            if not is_last:
                self._add_turn()


def _run_after_caller(task: Task) -> None:
    sleep(CALLER_SECONDS)
    task()


def _run_next_task(lane: weakref.ref[Lane]) -> None:
    """The task of a lane, which does nothing once its runtime is gone: a host's queue would keep the host alive."""
    alive = lane()
    if alive is not None:
        alive.run_next()


def are_large(metas: Sequence[TensorMetadata]) -> bool:
    """True when tensors have `LARGE_CALL_BYTES` or more together. Tensors of unknown shapes do not count."""
    return sum([meta.nbytes for meta in metas if meta.is_static]) >= LARGE_CALL_BYTES
