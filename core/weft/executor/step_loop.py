"""The loop of a step: what is to be done now, and the one thread at a time that does it.

To do are calls that are ready and mail: values that have come, functions that were asked for from other threads. So no
counter of a step needs a lock; whoever completes a value only puts it into the mail. The thread is the one that waits
for the step (`run`), or, when nobody does, a task of the work queue that comes when there is mail (`leave`).
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..errors import Cancelled, WeftError
from ..host.kernel_context import KernelContext
from ..support.kernel_errors import as_weft_error
from ..values.async_value import AsyncValue, failed

if TYPE_CHECKING:
    from .dataflow import Dataflow
    from .executable import Executable
    from .step import Step

DEAF = 0.5  # seconds that a step waits, once it must end, for kernels that have started
DEEPEST = 32  # calls of functions within each other on one stack; what is deeper takes its turn in the mail


class StepLoop:
    """Belongs to one step, and to the thread that made the step until it waits or leaves. All methods but `post` and
    `call` are for the thread that drives."""

    def __init__(self, step: Step, thread: int) -> None:
        self._step = step
        self._thread = thread  # that drives; 0 when none does
        self._context = KernelContext()
        self._ready: list[tuple[int, int, Dataflow]] = []
        self._numbers = count()
        self._expected: dict[int, Callable[[], None]] = {}  # for values that are pending, or in the mail
        self._promising: set[Dataflow] = set()
        self._depth = 0
        self._lock = threading.Lock()
        self._mail: deque[Callable[[], None]] = deque()
        self._bell: AsyncValue | None = None  # wakes the thread that waits
        self._left = False  # nobody waits: tasks of the work queue come
        self._sent = False  # a task is on its way
        self._over = False

    def run(self) -> None:
        """Until nothing is left to do, or the step has ended and is quiet."""
        self._context.run(self._run)

    def _run(self) -> None:
        token = self._step.on_cancel(self._ring)
        try:
            while not self._step.cancelled():
                if self._do_next():
                    continue
                if self._expected:
                    self._wait(None if self._step.deadline is None else max(self._step.deadline - monotonic(), 0))
                else:
                    return
            self._drain()
        finally:
            self._step.forget(token)
            self._end()

    def leave(self) -> None:
        """Do what can be done now; the work queue goes on with the rest when it can."""
        self._left = True
        self._step.on_cancel(self._ring)
        self._work()

    def call(self, function: Executable, arguments: Sequence[Any]) -> list[AsyncValue]:
        """Results of a function, run in this step: at once, unless it is called from afar or from too deep."""
        if threading.get_ident() == self._thread and self._depth < DEEPEST:
            self._depth += 1
            try:
                return function.start(arguments, self._step)
            finally:
                self._depth -= 1
        promises = [AsyncValue() for _ in function.function.results]

        def begin() -> None:
            for promise, value in zip(promises, self._started(function, arguments), strict=True):
                promise.forward_to(value)

        return promises if self.post(begin) else [self._ended() for _ in promises]

    def _started(self, function: Executable, arguments: Sequence[Any]) -> list[AsyncValue]:
        """What `start` gives, errors included: nobody is there to catch them."""
        try:
            if self._step.error is None:
                return function.start(arguments, self._step)
        except Exception as error:  # noqa: BLE001 - there may be no memory for a frame
            return [failed(as_weft_error(error, "calling a function"))] * len(function.function.results)
        return [self._ended() for _ in function.function.results]

    def _ended(self) -> AsyncValue:
        return failed(self._step.error or Cancelled("the run has ended"))

    def enter(self, dataflow: Dataflow, number: int) -> None:
        """A call is ready. Those of the youngest function go first, in the order of its program."""
        heapq.heappush(self._ready, (dataflow.rank, number, dataflow))

    def next_rank(self) -> int:
        return -next(self._numbers)

    def expect(self, value: AsyncValue, arrived: Callable[[], None]) -> None:
        """Call back, on the thread that drives, when a pending value is available; not after the end of the step, which
        the value may outlive."""
        number = next(self._numbers)
        self._expected[number] = arrived
        value.and_then(lambda: self.post(partial(self._deliver, number)))

    def _deliver(self, number: int) -> None:
        self._expected.pop(number)()

    def promises(self, dataflow: Dataflow) -> None:
        """This has promised values that will not come if the step ends before."""
        self._promising.add(dataflow)

    def has_kept(self, dataflow: Dataflow) -> None:
        self._promising.discard(dataflow)

    def post(self, mail: Callable[[], None]) -> bool:
        """Have something done by the thread that drives; False when the step is over. May be called by any thread."""
        with self._lock:
            if self._over:
                return False
            self._mail.append(mail)
        self._ring()
        return True

    def _ring(self) -> None:
        """Wake who waits, or send for somebody when nobody does."""
        with self._lock:
            bell, self._bell = self._bell, None
            idle = self._left and not self._thread and not self._over
            ends = idle and self._step.error is not None
            send = idle and not ends and not self._sent
            if ends:
                self._thread = threading.get_ident()
            self._sent = self._sent or send
        if bell is not None:
            bell.emplace(None)
        elif ends:
            self._work()
        elif send:
            try:
                self._step.host.work_queue.add_task(self._come)
            except WeftError as error:  # the queue is closed: the end of the step, which needs none
                self._step.cancel(error)

    def _come(self) -> None:
        """As a task of the work queue."""
        with self._lock:
            self._sent = False
            if self._thread or self._over:
                return
            self._thread = threading.get_ident()
        self._work()

    def _work(self) -> None:
        """Everything there is to do now."""
        is_left = False
        try:
            while not is_left and not self._step.cancelled():
                if self._context.run(self._do_next):
                    continue
                if self._expected:
                    is_left = self._rest()
                else:
                    break
        except BaseException:  # a Ctrl-C: nobody else would go on
            self._step.cancel(Cancelled("the run was interrupted"))
            raise
        finally:
            if not is_left:
                self._end()
                self._step.close()

    def _rest(self) -> bool:
        """Leave until there is mail; False when there is some, or the step has just been cancelled."""
        with self._lock:
            if self._mail or self._step.error is not None:
                return False
            self._thread = 0
            return True

    def _do_next(self) -> bool:
        """Open a letter or, when there is no mail, run a call that is ready. False when there is neither."""
        if self._mail:
            self._mail.popleft()()
        elif self._ready:
            _, number, dataflow = heapq.heappop(self._ready)
            dataflow.run(number)
        else:
            return False
        return True

    def _drain(self) -> None:
        """The step has ended: wait for what has started, for a while."""
        self._break_promises()
        end = monotonic() + DEAF
        while self._mail or (self._expected and end - monotonic() > 0):
            if self._mail:
                self._mail.popleft()()
            else:
                self._wait(max(end - monotonic(), 0))

    def _end(self) -> None:
        self._break_promises()
        with self._lock:
            self._over = True
        while self._mail:
            self._mail.popleft()()
        self._ready.clear()
        self._expected.clear()
        self._break_promises()

    def _break_promises(self) -> None:
        while self._promising:
            self._promising.pop().break_promises(self._ended())

    def _wait(self, timeout: float | None) -> None:
        """Until there is mail, the step is cancelled, or the time is over."""
        bell = AsyncValue()
        with self._lock:
            if self._mail or (self._step.error is not None and timeout is None):
                return  # who cancels rings, but may have done so before there was a bell
            self._bell = bell
        self._step.host.work_queue.await_values([bell], timeout)
