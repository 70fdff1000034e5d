"""Job: numbered work of one thread, its driver, that threads of the work queue may help with.

A task in the queue is an offer of help: it takes what is ready if there is still something, else it returns at once.
So the driver never depends on anybody to begin something; it waits only for what others have begun. It may be a
thread of the queue itself: jobs within jobs wait for what is deeper, never in a circle.
Whoever is interrupted in here (a Ctrl-C in the main thread) drops the job: the others end what they have begun.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from threading import Lock, get_ident
from typing import TYPE_CHECKING

from ..errors import Unknown
from .kernel_context import KernelContext
from .work_queues.waiting import SLICE, WaitingThreads

if TYPE_CHECKING:
    from .host import Host

Work = Callable[["Job", int], object]


def nothing() -> None:
    """What a job does besides when it fails, unless it is told."""


class Job:
    """Calls `work(job, number)` once for each number of `waits`, when the `waits[number]` others that have it among
    their `users` have ended. Work that takes long looks at `stopped` now and then.

    `on_failure()` is called, on any thread, when work has raised: others may have to be told.
    """

    def __init__(
        self, host: Host, waits: list[int], users: Sequence[Sequence[int]], work: Work,
        on_failure: Callable[[], object] = nothing,
    ) -> None:
        self.stopped = False  # nothing more is begun
        self.failed: int | None = None  # which work raised first
        self._error: Exception | None = None
        self._waits = waits
        self._users = users
        self._work: Work | None = work
        self._on_failure = on_failure
        self._ready = deque(number for number, left in enumerate(waits) if not left)
        self._left = len(waits)
        self._running = 0
        self._queue = host.work_queue
        self._offers = host.offers
        self._most_helpers = self._queue.parallelism_level - 1
        self._helpers = 0  # threads that help, or that were asked to
        self._driver = get_ident()
        self._context = copy_context()  # each helper works in a copy: a context is entered by one thread at a time
        self._waiting = WaitingThreads()
        self._lock = Lock()

    def run(self) -> None:
        """Return when all work has ended, or raise what the first one that failed has raised, when what has begun has
        ended. What a helper raises beside Exceptions is Unknown: it was not meant for this thread."""
        try:
            while not self._is_over():
                self._take_part()
                self._waiting.wait_until(self._is_drivers_turn, SLICE)
        except BaseException:
            self.stopped = True
            self._offers.clear()  # one may be counted that was never made
            raise
        self._work = None  # offers that nobody took up yet keep no frame alive
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback leads here

    def _help(self) -> None:
        """The task of an offer."""
        with suppress(IndexError):
            self._offers.pop()
        KernelContext(self._context.copy()).run(self._take_part)

    def _take_part(self) -> None:
        """Work until there is nothing more to begin for now."""
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
        with suppress(Exception):  # of somebody who was told: the driver must not wait for ever for this thread
            self._on_failure()

    def _next(self, ended: int | None) -> int | None:
        """What to go on with when `ended` has: something that waited for it, if there is. None: nothing for now."""
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
                self._helpers -= 1  # here, so that whoever finds something to help with next counts right
            is_driver_idle = bool(self._waiting.locks)
            asked = 0
            if self._ready and not self.stopped and len(self._offers) < 4 * self._most_helpers:
                asked = max(min(len(self._ready) - is_driver_idle, self._most_helpers - self._helpers), 0)
                self._helpers += asked
        if is_driver_idle and self._is_drivers_turn():
            self._waiting.wake()
        for _ in range(asked):
            self._ask_for_help()
        return number

    def _ask_for_help(self) -> None:
        self._offers.append(None)
        try:
            self._queue.add_task(self._help)
        except Exception:  # noqa: BLE001 - the queue is closed or a forked child's, has no threads or is at fault
            self._offers.clear()
            self._most_helpers = 0  # nobody comes: the driver does it all

    def _is_over(self) -> bool:
        return not self._running and (not self._left or self.stopped)

    def _is_drivers_turn(self) -> bool:
        return self._is_over() or (bool(self._ready) and not self.stopped)
