"""StepLoop: the remaining work of a step, and the one thread at a time that does it.

Work is ready calls and mail: values that have come, and function calls from other threads. A thread that completes a
value only puts it into the mail, so no counter of a step needs a lock. The driving thread is the one that waits for the
step (`run`). After `detach` it is a task of the work queue, which starts when mail arrives.

    state      driving thread         next state, and the event that leads to it
    ATTENDED   the step's maker       WORKING: `detach`; OVER: the end of `run`
    WORKING    a task, or canceller   IDLE: no work is left but values are pending; OVER: no work is left, or cancelled
    IDLE       none                   CALLED: mail; WORKING: cancellation, on the canceller's thread
    CALLED     none, one is enqueued  WORKING: the task starts, or cancellation
    OVER       none

One thread at a time drives a step. A task of the work queue that completed a value drives its step on before it ends
(`on_completion`), so that consumers run before the tasks behind it. Only blocking tasks block a thread of the queue.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import Cancelled, HealdError
from ..host.kernel_context import KernelContext
from ..support.kernel_errors import as_heald_error
from ..values.async_value import AsyncValue, available, failed

if TYPE_CHECKING:
    from ..host.parallel import Workers

CANCEL_GRACE = 0.5  # seconds that a cancelled step waits for kernels that have started


class LoopState(Enum):
    """The states of a loop; the module's table has the transitions."""

    ATTENDED = auto()
    WORKING = auto()
    IDLE = auto()
    CALLED = auto()
    OVER = auto()


class DrivenStep(Protocol):
    """The step of a loop, as the loop sees it."""

    workers: Workers
    error: HealdError | None
    deadline: float | None
    ends_at_error: bool

    def cancelled(self) -> bool:
        """True when the step must end."""

    def cancel(self, error: HealdError) -> None:
        """End the step with this error."""

    def close(self) -> None:
        """Called at the end of a detached step."""

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Call back when the step must end. Returns a handle for `forget`."""

    def forget(self, handle: int) -> None:
        """Unregister the callback with this handle."""


class ReadyCalls(Protocol):
    """The calls of one run of a function that the loop runs when their arguments are available.

    `rank`: the loop runs calls of lower ranks first.
    """

    rank: int

    def run(self, number: int) -> None:
        """Run the ready call with this number."""

    def break_promises(self, error: AsyncValue) -> None:
        """Complete all open promises with this error, at the end of the step."""


class StepLoop:
    """The loop of one step. The thread that made the step owns the loop until it waits or leaves.

    Any thread may call `post` and `call`, any task `on_completion`. All other methods are for the driving thread.
    """

    def __init__(self, step: DrivenStep, thread: int) -> None:
        self._step = step
        self._thread = thread  # id of the driving thread; 0 without one
        self._context = KernelContext()
        self._ready: list[tuple[int, int, ReadyCalls]] = []
        self._numbers = count()
        self._expected: dict[int, Callable[[], None]] = {}  # callbacks of values that are pending, or in the mail
        self._promising: set[ReadyCalls] = set()
        self._lock = threading.Lock()
        self._mail: deque[Callable[[], None]] = deque()
        self._wakeup: AsyncValue | None = None  # wakes the waiting thread
        self._state = LoopState.ATTENDED

    def run(self) -> None:
        """Drive the step until no work is left, or until it was cancelled and its kernels are quiet."""
        self._context.run(self._run)

    def _run(self) -> None:
        handle = self._step.on_cancel(self._wake)
        try:
            while not self._step.cancelled():
                if self._do_next():
                    continue
                if self._expected:
                    self._wait(None if self._step.deadline is None else max(self._step.deadline - monotonic(), 0))
                else:
                    return
            self._await_kernels_for_grace()
        finally:
            self._step.forget(handle)
            self._end()

    def detach(self) -> None:
        """Do the work that is possible now; tasks of the work queue do the rest."""
        if self._state is LoopState.ATTENDED:  # without the lock: only this thread changes this state
            self._state = LoopState.WORKING
        self._step.on_cancel(self._wake)
        self._work()

    @property
    def thread(self) -> int:
        """The id of the driving thread; 0 without one."""
        return self._thread

    def call(self, invoke: Callable[[], list[Any]], count: int) -> list[AsyncValue]:
        """Promise the `count` results of a function, which the driving thread calls when it comes to its mail."""
        promises = [AsyncValue() for _ in range(count)]

        def begin() -> None:
            for promise, value in zip(promises, self._results(invoke, count), strict=True):
                promise.forward_to(value if isinstance(value, AsyncValue) else available(value))

        return promises if self.post(begin) else [self._end_error() for _ in promises]

    def _results(self, invoke: Callable[[], list[Any]], count: int) -> list[Any]:
        """Return the results of a function. Errors become results, since no caller could catch them."""
        try:
            if self._step.error is None:
                return invoke()
        except Exception as error:  # noqa: BLE001 - memory for a frame may be short
            typed = as_heald_error(error, "calling a function")
            if self._step.ends_at_error:
                self._step.cancel(typed)
            return [failed(typed)] * count
        return [self._end_error() for _ in range(count)]

    def _end_error(self) -> AsyncValue:
        return failed(self._step.error or Cancelled("the run ended before this work was done"))

    def queue_call(self, calls: ReadyCalls, number: int) -> None:
        """Queue a ready call. Calls of the youngest function go first, in the order of its program."""
        heapq.heappush(self._ready, (calls.rank, number, calls))

    def next_rank(self) -> int:
        return -next(self._numbers)

    def expect(self, value: AsyncValue, arrived: Callable[[], None]) -> None:
        """Call back on the driving thread when a pending value is available.

        After the end of the step, which the value may outlive, there is no call.
        """
        number = next(self._numbers)
        self._expected[number] = arrived
        value.and_then(lambda: self.post(partial(self._deliver, number)))

    def _deliver(self, number: int) -> None:
        self._expected.pop(number)()

    def register_promises(self, calls: ReadyCalls) -> None:
        """Register calls that have promised values, so that the end of the step breaks these promises."""
        self._promising.add(calls)

    def forget_promises(self, calls: ReadyCalls) -> None:
        self._promising.discard(calls)

    def post(self, mail: Callable[[], None]) -> bool:
        """Queue a callback for the driving thread. Returns False when the step is over. Any thread may call this."""
        with self._lock:
            if self._state is LoopState.OVER:
                return False
            self._mail.append(mail)
        self._wake()
        return True

    def _wake(self) -> None:
        """Wake the waiting thread, or enqueue a task when no thread waits."""
        with self._lock:
            wakeup, self._wakeup = self._wakeup, None
            ends = self._step.error is not None and self._state in (LoopState.IDLE, LoopState.CALLED)
            sends = not ends and self._state is LoopState.IDLE
            if ends:
                self._take_over()
            elif sends:
                self._state = LoopState.CALLED
        if wakeup is not None:
            wakeup.emplace(None)
        elif ends:
            self._work()
        elif sends:
            try:
                self._step.workers.work_queue.add_task(self.on_completion)
            except HealdError as error:  # the queue is closed; cancelling the step needs no task
                self._step.cancel(error)

    def on_completion(self) -> None:
        """Drive the step as a task of the work queue, at the mail's call, unless another thread does.

        A task that completed a value ends with this: the consumers run before the tasks behind it in the queue.
        """
        with self._lock:
            if self._state is not LoopState.CALLED:  # the canceller's thread drives, or the step is over
                return
            self._take_over()
        self._work()

    def _take_over(self) -> None:
        """Make this thread the driving one. The caller holds the lock."""
        self._state, self._thread = LoopState.WORKING, threading.get_ident()

    def _work(self) -> None:
        """Do all the work that is possible now; close the step when none is left."""
        is_left = False
        try:
            while not is_left and not self._step.cancelled():
                if self._context.run(self._do_next):
                    continue
                if self._expected:
                    is_left = self._become_idle()
                else:
                    break
        except BaseException:  # a Ctrl-C: no other thread would drive on
            self._step.cancel(Cancelled("the run was interrupted"))
            raise
        finally:
            if not is_left:
                self._end()
                self._step.close()

    def _become_idle(self) -> bool:
        """Stop driving until mail arrives. Returns False when there is mail already, or the step was just cancelled."""
        with self._lock:
            if self._mail or self._step.error is not None:
                return False
            self._state, self._thread = LoopState.IDLE, 0
            return True

    def _do_next(self) -> bool:
        """Call back for one piece of mail or, without mail, run a ready call. Returns False when there is neither."""
        if self._mail:
            self._mail.popleft()()
        elif self._ready:
            _, number, calls = heapq.heappop(self._ready)
            calls.run(number)
        else:
            return False
        return True

    def _await_kernels_for_grace(self) -> None:
        """Wait, up to CANCEL_GRACE seconds after the end of the step, for kernels that have started."""
        self._break_promises()
        end = monotonic() + CANCEL_GRACE
        while self._mail or (self._expected and end - monotonic() > 0):
            if self._mail:
                self._mail.popleft()()
            else:
                self._wait(max(end - monotonic(), 0))

    def _end(self) -> None:
        self._break_promises()
        with self._lock:
            self._state = LoopState.OVER
        while self._mail:
            self._mail.popleft()()
        self._ready.clear()
        self._expected.clear()
        self._break_promises()

    def _break_promises(self) -> None:
        while self._promising:
            self._promising.pop().break_promises(self._end_error())

    def _wait(self, timeout: float | None) -> None:
        """Wait until mail arrives, the step is cancelled, or the timeout has passed."""
        wakeup = AsyncValue()
        with self._lock:
            if self._mail or (self._step.error is not None and timeout is None):
                return  # a cancellation wakes, but may have come before the value existed
            self._wakeup = wakeup
        self._step.workers.work_queue.await_values([wakeup], timeout)
