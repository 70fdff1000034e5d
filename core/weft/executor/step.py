"""Step: one run of a program, as its kernels and those who wait for it see it: what it may use, and when it must end.

A step is cancelled once, by whoever comes first: its user, its deadline, its first error, the end of its session.
Kernels that have started are asked to end (`on_cancel`, or by polling `cancelled`); others are not started any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from threading import TIMEOUT_MAX, get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import Cancelled, DeadlineExceeded, InvalidArgument, WeftError
from ..host.cancellation import CancelToken
from ..host.parallel import Job
from ..host.resources import Resources
from ..support.kernel_errors import as_weft_error, is_interrupt
from ..values.async_value import AsyncValue, failed
from .step_loop import StepLoop

if TYPE_CHECKING:
    from threading import Lock, RLock

    from ..contract.host_kernel import Callee
    from ..host.host import Host
    from .trace import Trace

SLICE = 0.005  # seconds between two looks of a step that waits for a lock


class RunOptions(NamedTuple):
    """Limits and records of one run.

    `timeout`: seconds, preparing and linking included; None or infinity for no limit.
    `cancel`: a token; the run ends when it is cancelled.
    `trace`: the run's RunMetadata gets the times of its kernels.
    """

    timeout: float | None = None
    cancel: CancelToken | None = None
    trace: bool = False

    def check(self) -> None:
        """Raises InvalidArgument for a field of another type, and for a timeout that is negative or NaN."""
        timeout = self.timeout
        if timeout is not None and (not isinstance(timeout, Real) or isinstance(timeout, bool)):
            raise InvalidArgument(f"RunOptions.timeout is a number of seconds or None, not {type(timeout).__name__}")
        if timeout is not None and not timeout >= 0:  # nor is NaN
            raise InvalidArgument(f"RunOptions.timeout is {float(timeout)} s", hint="a timeout is 0 or more seconds")
        if self.cancel is not None and not isinstance(self.cancel, CancelToken):
            raise InvalidArgument(f"RunOptions.cancel is a CancelToken or None, not {type(self.cancel).__name__}")


class Step:
    """`timeout`: seconds from now; `parents`: tokens whose cancellation is this step's; `trace`: what its kernels'
    times are recorded in; `resources`: what its kernels share with other steps, the host's if nothing is said."""

    def __init__(
        self, host: Host, timeout: float | None = None, parents: tuple[CancelToken, ...] = (),
        trace: Trace | None = None, resources: Resources | None = None,
    ) -> None:
        self.host = host
        self.trace = trace
        self.resources = host.resources if resources is None else resources
        self._thread = get_ident()
        self._loops: dict[None, StepLoop] = {}  # the one, once it is needed: setting a default is atomic
        self._is_over = False
        self._owned: list[tuple[Callable[[Any], None], Any]] = []  # buffers of this run alone, and what frees them
        self.error: WeftError | None = None  # why the step must end
        self.deadline = None if timeout is None or timeout > TIMEOUT_MAX else monotonic() + timeout
        self.is_plain = trace is None and self.deadline is None  # its calls need no look one by one
        self._timeout = timeout
        self._first: dict[None, WeftError] = {}  # the error of whoever came first: setting a default is atomic
        self._ended = CancelToken()
        self._parents = [(parent, parent.on_cancel(self._cancel_by_parent)) for parent in parents]

    @property
    def loop(self) -> StepLoop:
        """What runs the calls that could not be run in order; made when there are some."""
        for loop in self._loops.values():
            return loop
        return self._loops.setdefault(None, StepLoop(self, self._thread))

    def call(self, function: Callee, arguments: Sequence[Any]) -> list[AsyncValue]:
        """Run a function of the program in this step: its results, which may come later. Arguments may be AsyncValues.

        The one door for kernels that call functions. It never waits, and may be called from any thread.
        """
        executable = function.executable
        if self._is_over:
            return [failed(Cancelled("the run has ended"))] * len(executable.function.results)
        return self.loop.call(executable, arguments)

    def own(self, free: Callable[[Any], None], buffer: Any) -> None:
        """Free a buffer on a device when the step is over; what is enqueued then may still use it."""
        self._owned.append((free, buffer))

    def post(self, mail: Callable[[], None]) -> bool:
        """Have the thread that drives this step call back: for kernels that go on when a value has come. False when
        the step is over."""
        return not self._is_over and self.loop.post(mail)

    def enqueue(self, work: Callable[[], Any]) -> AsyncValue:
        """The result of `work`, a non-blocking task of the work queue: its value, or as error whatever it raises."""
        value = AsyncValue()
        self.host.work_queue.add_task(lambda: self._complete(value, work))
        return value

    def enqueue_blocking(self, work: Callable[[], Any]) -> AsyncValue:
        """As enqueue, of work that waits for the outside world."""
        value = AsyncValue()
        self.host.work_queue.add_blocking_task(lambda: self._complete(value, work), allow_queuing=True)
        return value

    def _complete(self, value: AsyncValue, work: Callable[[], Any]) -> None:
        try:
            if self.error is not None:
                raise Cancelled("the run ended before this began")
            result = work()
        except BaseException as error:
            value.set_error(as_weft_error(error, "a task of the work queue"))
            if is_interrupt(error):
                raise
            return
        if isinstance(result, AsyncValue):
            value.forward_to(result)
        else:
            value.emplace(result)

    def leave(self) -> None:
        """Nobody waits for this step: the work queue goes on with what is left of it."""
        if self._loops:
            self.loop.leave()
        else:
            self.close()

    def cancelled(self) -> bool:
        """True when the step must end: kernels that take long ask this now and then."""
        if self.deadline is not None and self.error is None and monotonic() >= self.deadline:
            self.cancel(DeadlineExceeded(f"the run took longer than its timeout of {self._timeout} s"))
        return self.error is not None

    def check(self) -> None:
        """Raises the error of a step that must end."""
        if self.cancelled():
            raise self.error  # type: ignore[misc]

    def end(self) -> WeftError:
        """The error of a run that was stopped; a lasting step may have been restarted since."""
        return self.error or Cancelled("the run was cancelled")

    @contextmanager
    def holding(self, lock: Lock | RLock) -> Iterator[None]:
        """With the lock, which another thread may hold for long. Raises the error of a step that ends while it
        waits."""
        while not lock.acquire(timeout=SLICE):
            self.check()
        try:
            yield
        finally:
            lock.release()

    def cancel(self, error: WeftError) -> None:
        """End the step with this error, unless it has one already."""
        if self.error is None:
            self.error = self._first.setdefault(None, error)
            self.host.stop(self)
        self._ended.cancel()

    def parallel_for(self, count: int, work: Callable[[int], object]) -> None:
        """Call `work` with every number below `count`, here and on threads of the work queue that have nothing to do.

        Returns when all has ended; raises what the first one to fail has raised, when what had begun has ended. For
        kernels that split their work, into parts of 100 us or more.
        """
        Job(self.host, [0] * count, [()] * count, lambda _, number: work(number)).run()

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Call back when the step must end, at once if it must; gives a number for `forget`."""
        return self._ended.on_cancel(callback)

    def forget(self, number: int) -> None:
        self._ended.forget(number)

    def restart(self) -> None:
        """Serve on after a cancellation."""
        self.error = None
        self._first.clear()
        self._ended = CancelToken()

    def close(self) -> None:
        """The step is over: its parents forget it, and it the error, whose traceback may hold all that the run had."""
        if self.error is not None:
            self.error = self._first[None] = Cancelled("the run has ended")
        for parent, number in self._parents:
            parent.forget(number)
        self._is_over = True
        self._loops.clear()
        self.host.device_memory.drain(self._owned)

    def _cancel_by_parent(self) -> None:
        self.cancel(Cancelled("the run was cancelled"))


def lasting_step(host: Host, resources: Resources) -> Step:
    """A step shared by all runs that need none of their own. Cancelling the host cancels it; restart revives it."""
    step = Step(host, resources=resources)
    host.lasting[id(step)] = step
    if host.cancellation.is_cancelled:
        step.cancel(Cancelled("the host was cancelled"))
    return step
