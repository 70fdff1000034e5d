"""Job: numbered work of one thread, its driver, that threads of the work queue may help with.

A task in the queue is an offer of help. It takes ready work if some is left, and returns at once if none is. So the
driver never depends on another thread to begin work: it waits only for work that another thread has begun. The driver
may be a thread of the queue itself: jobs within jobs wait for deeper jobs, never in a circle. An interrupt in the
driver (a Ctrl-C in the main thread) drops the job; the helpers end the work that they have begun.
"""

# The theory of jobs
#
# A number is in one of four states, which it goes through in this order:
#
#   waiting   `_waits[number]` of its predecessors have not ended
#   ready     the count is 0, and `_ready` has the number
#   running   one thread works on it; `_running` counts these
#   ended     `_left` no longer counts it
#
# Invariants
# - `_lock` guards the four counters. It is never held while `work`, a callback or the queue is called.
# - A job is over when nothing runs and either nothing is left or `stopped` is true. An offer that is taken later finds
#   nothing ready, and returns.
# - An ended number makes its successors ready at the front of the deque. So a thread goes on with data in its cache.
# - The driver sleeps only while all ready work is taken. Every thread that ends work looks whether the driver may go
#   on.
# - A queue that refuses a task costs speed alone: `_most_helpers` becomes 0, and the driver does all the work.
#
# Termination: the predecessors of a number never form a circle, so some number is ready or running until the end.
#
# Rule: a job never waits for an offer to be taken. A wait for a helper that has not begun could wait for a thread that
# itself waits for this job.

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Protocol

from ...errors import Unknown
from .kernel_context import KernelContext
from .work_queues.waiting import WAIT_SLICE_SECONDS, WaitingThreads

if TYPE_CHECKING:
    from ..contract.work_queue import ConcurrentWorkQueue

Work = Callable[["Job", int], object]


def do_nothing() -> None:
    """The default of `on_failure`: do nothing."""


class Workers(Protocol):
    """The threads of a work queue, as steps and jobs use them: a Host with its queue, or the QueueWorkers of another.

    `offers`: One entry for each offer of help that no thread of the queue has taken yet.
    """

    @property
    def work_queue(self) -> ConcurrentWorkQueue: ...

    @property
    def offers(self) -> deque[None]: ...


class QueueWorkers:
    """The workers of a queue that runs ask for by name."""

    def __init__(self, queue: ConcurrentWorkQueue) -> None:
        self.work_queue = queue
        self.offers: deque[None] = deque()


class Job:
    """Calls `work(job, number)` once for each index of `waits`.

    `workers`: The threads that may help.
    `waits`: For each number, how many other numbers must have ended before it begins.
    `users`: For each number, the numbers that wait for it.
    `work`: Returns early once `job.stopped` is true; a function that takes long must look at it.
    `on_failure()`: Called on the failing thread after `work` has raised, for instance to cancel other steps.
    """

    def __init__(
        self, workers: Workers, waits: list[int], users: Sequence[Sequence[int]], work: Work,
        on_failure: Callable[[], object] = do_nothing,
    ) -> None:
        self.stopped = False  # True: no further work begins
        self.failed: int | None = None  # the number of the work that raised first
        self._error: Exception | None = None
        self._waits = waits
        self._users = users
        self._work: Work | None = work
        self._on_failure = on_failure
        self._ready = deque(number for number, left in enumerate(waits) if not left)
        self._left = len(waits)
        self._running = 0
        self._queue = workers.work_queue
        self._offers = workers.offers
        self._most_helpers = self._queue.parallelism_level - 1
        self._helpers = 0  # threads that help or were asked to help
        self._driver = get_ident()
        self._context = copy_context()  # helpers use copies: only one thread at a time may enter a context
        self._waiting = WaitingThreads()
        self._lock = Lock()

    def run(self) -> None:
        """Return when all work has ended.

        After a failure no further work begins. `run` then raises the first exception, once all begun work has ended. An
        exception of a helper that is no Exception is raised as Unknown: it was not meant for this thread.
        """
        try:
            while not self._is_over():
                self._take_part()
                self._waiting.wait_until(self._is_drivers_turn, WAIT_SLICE_SECONDS)
        except BaseException:
            self.stopped = True
            self._offers.clear()  # the count may include an offer that was never made
            raise
        self._work = None  # offers that no thread has taken yet must keep no frame alive
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback refers to this frame, which refers to the job

    def _help(self) -> None:
        """Take up an offer: the task in the queue."""
        with suppress(IndexError):
            self._offers.pop()
        KernelContext(self._context.copy()).run(self._take_part)

    def _take_part(self) -> None:
        """Run the work for one number after another, until no number can begin."""
        work, number = self._work, self._next(None)
        while number is not None:
            assert work is not None
            try:
                work(self, number)
            except Exception as error:  # noqa: BLE001 - raised on the driver's thread
                self._fail(number, error)
            except BaseException as error:
                if get_ident() == self._driver:
                    raise
                self._fail(number, Unknown(f"{type(error).__name__} was raised in a thread of the work queue: {error}"))
            number = self._next(number)

    def _fail(self, number: int, error: Exception) -> None:
        with self._lock:
            if self.failed is None:
                self.failed, self._error, self.stopped = number, error, True
        with suppress(Exception):  # an exception of the callback must not keep the driver waiting for this thread
            self._on_failure()

    def _next(self, ended: int | None) -> int | None:
        """The number to work on after `ended`, preferably one that waited for it. None: nothing can begin for now."""
        with self._lock:
            if ended is not None:
                self._running -= 1
                self._left -= 1
                for user in reversed(self._users[ended]):
                    self._waits[user] -= 1
                    if not self._waits[user]:
                        self._ready.appendleft(user)
            number = self._ready.popleft() if self._ready and not self.stopped else None
            if number is not None:
                self._running += 1
            elif get_ident() != self._driver:
                self._helpers -= 1  # under the lock, so that the next request for help counts correctly
            is_driver_idle = bool(self._waiting.locks)
            requested_helpers = 0
            if self._ready and not self.stopped and len(self._offers) < 4 * self._most_helpers:
                requested_helpers = max(min(len(self._ready) - is_driver_idle, self._most_helpers - self._helpers), 0)
                self._helpers += requested_helpers
        if is_driver_idle and self._is_drivers_turn():
            self._waiting.wake()
        for _ in range(requested_helpers):
            self._ask_for_help()
        return number

    def _ask_for_help(self) -> None:
        self._offers.append(None)
        try:
            self._queue.add_task(self._help)
        except Exception:  # noqa: BLE001 - the queue is closed or a forked child's, has no threads or is at fault
            self._offers.clear()
            self._most_helpers = 0  # no helper will come: the driver does all the work

    def _is_over(self) -> bool:
        return not self._running and (not self._left or self.stopped)

    def _is_drivers_turn(self) -> bool:
        return self._is_over() or (bool(self._ready) and not self.stopped)
