"""Step: one run of a program, as its kernels and its callers see it, with its resources, its deadline and its error.

A step is cancelled once: by its user, its deadline, its first error, or the end of its session. The first of these
errors stays. Kernels that have started are asked to end, by `on_cancel` or by polling `cancelled`. No other kernels
start.

The executor knows no control flow: it knows dead values, and neither frames of loops nor iterations. Kernels call
functions of the program through `Step.invoke` and `Step.call`, which never wait. Calls that are nested too deep, or
come from another thread, queue in the loop's mail. A function that only computes needs no loop and no step of its own;
its results are payloads.

A step makes its rendezvous at the first Send or Recv, and its error aborts it. A session with a transport aborts a
failed step's rendezvous even before the first use, for other processes wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from numbers import Real
from threading import TIMEOUT_MAX, Timer, get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any

from ...errors import Cancelled, DeadlineExceeded, HealdError, InvalidArgument, ResourceExhausted
from ..host.cancellation import CancelToken
from ..host.resources import Resources
from ..support.kernel_errors import as_heald_error, as_plugin_error, is_interrupt
from ..support.records import NamedTuple
from ..values.async_value import READY, AsyncValue, available, failed
from .call_level import at_level, current_level

if TYPE_CHECKING:
    from threading import Lock, RLock

    from ..contract.host_kernel import Callee
    from ..contract.rendezvous import Rendezvous
    from ..host.host import Host
    from ..host.parallel import Workers
    from .step_loop import StepLoop
    from .trace import Trace

MOST_CALLS_ON_STACK = 32  # nested function calls on one stack; a deeper call goes through the loop's mail
LOCK_SLICE_SECONDS = 0.005  # seconds between two checks for cancellation while a step waits for a lock


def ignore_value() -> None:
    """The callback for a value that has no consumers."""


class RunOptions(NamedTuple):
    """Limits and records of one run.

    `timeout`: seconds, including preparation and linking; None or infinity for no limit.
    `cancel`: a token; cancelling it ends the run.
    `trace`: True records the times of the run's kernels in its RunMetadata.
    `work_queue`: the name of the queue whose threads work for the run, a section [work_queues.NAME] of config; None for
        the session's queue.
    `partition_graphs`: True records the graphs of the step by device in its RunMetadata.
    """

    timeout: float | None = None
    cancel: CancelToken | None = None
    trace: bool = False
    work_queue: str | None = None
    partition_graphs: bool = False

    def check(self) -> None:
        """Raises InvalidArgument for a field of another type, and for a timeout that is negative or NaN."""
        timeout = self.timeout
        if timeout is not None and (not isinstance(timeout, Real) or isinstance(timeout, bool)):
            raise InvalidArgument(f"RunOptions.timeout is a number of seconds or None, not {type(timeout).__name__}")
        if timeout is not None and not timeout >= 0:  # `not >=` also catches NaN
            raise InvalidArgument(f"RunOptions.timeout is {float(timeout)} s", hint="a timeout is 0 or more seconds")
        if self.cancel is not None and not isinstance(self.cancel, CancelToken):
            raise InvalidArgument(f"RunOptions.cancel is a CancelToken or None, not {type(self.cancel).__name__}")


class Step:
    """The state of one run, apart from its frames.

    `timeout`: seconds from now.
    `parents`: tokens; cancelling one of them cancels the step.
    `trace`: records the times of the step's kernels.
    `resources`: shared by the kernels of several steps; the host's by default.
    `ends_at_error`: True when the first error ends the step (a session's run). Otherwise independent calls go on (a
        host program's run).
    `rendezvous`: makes the rendezvous of the step's Send and Recv nodes, at its first use or at the step's error; by
        default a LocalRendezvous.

    The attribute `workers` has the threads that work for the step: at first the threads of the host's queue.
    """

    def __init__(
        self, host: Host, timeout: float | None = None, parents: tuple[CancelToken, ...] = (),
        trace: Trace | None = None, resources: Resources | None = None, *, ends_at_error: bool = False,
        rendezvous: Callable[[], Rendezvous] | None = None,
    ) -> None:
        self.host = host
        self.workers: Workers = host
        self.ends_at_error = ends_at_error
        self.depth = 0  # nested function calls on the stack of the driving thread
        self.trace = trace
        self.resources = host.resources if resources is None else resources
        self._thread = get_ident()
        self._loops: dict[None, StepLoop] = {}  # at most one, made on first use: `setdefault` is atomic
        self._is_over = False
        self._owned: list[tuple[Callable[[Any], None], Any]] = []  # (free function, buffer) of this run alone
        self.error: HealdError | None = None  # the reason why the step must end
        self.deadline = None if timeout is None or timeout > TIMEOUT_MAX else monotonic() + timeout
        self.is_plain = trace is None and self.deadline is None  # no check between single calls
        self._timeout = timeout
        self._alarm: Timer | None = None  # cancels a detached step at its deadline
        self._first: dict[None, HealdError] = {}  # the first error, at most one: `setdefault` is atomic
        self._ended = CancelToken()
        self._parents = [(parent, parent.on_cancel(self._cancel_by_parent)) for parent in parents]
        self._transport = rendezvous
        self._meeting: dict[None, Rendezvous] = {}  # the rendezvous, at most one: `setdefault` is atomic
        self._aborts = 0 if rendezvous is None else self.on_cancel(self._abort)  # its other processes wait for this one

    @property
    def has_transport(self) -> bool:
        """True when others than this step may use its rendezvous."""
        return self._transport is not None

    @property
    def rendezvous(self) -> Rendezvous:
        """The rendezvous of the step's Send and Recv nodes, made on first use. The end of the step aborts it."""
        from ..host.rendezvous import LocalRendezvous

        for rendezvous in self._meeting.values():
            return rendezvous
        rendezvous = self._meeting.setdefault(None, (self._transport or LocalRendezvous)())
        if not self._aborts:
            self._aborts = self.on_cancel(self._abort)
        return rendezvous

    def _abort(self) -> None:
        with suppress(Exception):  # a transport may have broken; the step has its error already
            self.rendezvous.abort(self.end_error())

    @property
    def loop(self) -> StepLoop:
        """The loop of the calls that could not run in order, made on first use."""
        from .step_loop import StepLoop

        for loop in self._loops.values():
            return loop
        return self._loops.setdefault(None, StepLoop(self, self._thread))

    @property
    def has_loop(self) -> bool:
        """True when some call could not run in order."""
        return bool(self._loops)

    def call(self, function: Callee, arguments: Sequence[Any]) -> list[AsyncValue]:
        """Run a function of the program in this step and return its results, which may come later.

        Arguments may be AsyncValues. The method never waits, and any thread may call it.
        """
        return [value if isinstance(value, AsyncValue) else available(value)
                for value in self.invoke(function, arguments)]

    def invoke(self, function: Callee, arguments: Sequence[Any]) -> list[Any]:
        """Like `call`; results that are available are payloads.

        A function that is called on the thread that drives the step runs at once. A call from another thread, or
        nested too deep, goes through the step's loop. In a session's run an error of the function is raised.
        """
        executable = function.executable
        if not executable.is_asynchronous:  # it needs no loop: several threads may run it in one step
            return executable.invoke(arguments, self)  # type: ignore[no-any-return]
        count = len(executable.function.results)
        if self._is_over:
            return [failed(Cancelled("the run ended before this work was done"))] * count
        level = self._level_of_call(function)
        thread = self._thread if not self._loops else self.loop.thread
        if self.depth >= MOST_CALLS_ON_STACK or get_ident() != thread:
            return [*self.loop.call(partial(at_level, level, executable.invoke, arguments, self), count)]
        self.depth += 1
        try:
            return at_level(level, executable.invoke, arguments, self)
        finally:
            self.depth -= 1

    def _level_of_call(self, function: Callee) -> int:
        """Return the level of a call that begins now. Raises ResourceExhausted beyond the host's limit."""
        level = current_level() + 1
        if level > self.host.most_nested_calls:
            raise ResourceExhausted(f"function '{function.name}' is called {level:,} levels deep",
                                    hint="end the recursion earlier, or raise [limits] nested_calls")
        return level

    def caller(self, function: Callee) -> Callable[[Sequence[Any]], list[Any]]:
        """Return `invoke` of this function, as a function of its arguments: for kernels that call it often."""
        executable = function.executable
        if executable.is_asynchronous:
            return partial(self.invoke, function)
        return lambda arguments: executable.invoke(arguments, self)

    def begin(self, function: Callee, arguments: Sequence[Any]) -> list[AsyncValue]:
        """Like `call`; a function without results gives a chain, which is filled when the function has returned."""
        executable = function.executable
        if executable.function.results:
            return self.call(function, arguments)
        if self._is_over:
            return [failed(Cancelled("the run ended before this work was done"))]
        thread = self._thread if not self._loops else self.loop.thread
        if executable.is_asynchronous and (self.depth >= MOST_CALLS_ON_STACK or get_ident() != thread):
            level = self._level_of_call(function)
            return self.loop.call(lambda: at_level(level, executable.invoke, arguments, self) or [None], 1)
        self.invoke(function, arguments)
        return [READY]

    def enqueue_call(self, function: Callee, arguments: Sequence[Any]) -> list[AsyncValue]:
        """Like `call`, as a task of the work queue.

        Several tasks run functions that only compute at the same time. Other functions run on the thread that drives
        the step.
        """
        promises = [AsyncValue() for _ in function.executable.function.results]
        begun, level = AsyncValue(), current_level()

        def settle(results: Sequence[AsyncValue]) -> None:
            for promise, result in zip(promises, results, strict=True):
                promise.forward_to(result)
            begun.emplace(None)
            self._go_on()

        def task() -> None:
            try:
                results = at_level(level, self.call, function, arguments)
            except BaseException as error:
                typed = as_heald_error(error, "calling a function")
                if self.ends_at_error:
                    self.cancel(typed)
                settle([failed(typed)] * len(promises))
                if is_interrupt(error):
                    raise
            else:
                settle(results)

        self.workers.work_queue.add_task(task)
        if not promises:
            self.post(lambda: self.loop.expect(begun, ignore_value))  # nothing else would keep the step open
        return promises

    def _go_on(self) -> None:
        """Drive the step at the end of a task that completed a value, unless another thread does."""
        for loop in list(self._loops.values()):
            loop.on_completion()

    def free_at_end(self, free: Callable[[Any], None], buffer: Any) -> None:
        """Free a device buffer when the step is over. Work enqueued by then may still use it."""
        self._owned.append((free, buffer))

    def post(self, mail: Callable[[], None]) -> bool:
        """Call `mail` back on the thread that drives this step. Returns False when the step is over.

        Kernels continue this way when a value has come.
        """
        return not self._is_over and self.loop.post(mail)

    def enqueue(self, work: Callable[[], Any]) -> AsyncValue:
        """Run `work` as a non-blocking task of the work queue.

        Returns its result; an exception becomes the value's error.
        """
        value = AsyncValue()
        self.workers.work_queue.add_task(partial(at_level, current_level(), self._run_task, value, work))
        return value

    def enqueue_blocking(self, work: Callable[[], Any]) -> AsyncValue:
        """Like `enqueue`, for work that blocks on the outside world."""
        value = AsyncValue()
        task = partial(at_level, current_level(), self._run_task, value, work)
        self.workers.work_queue.add_blocking_task(task, allow_queuing=True)
        return value

    def _run_task(self, value: AsyncValue, work: Callable[[], Any]) -> None:
        try:
            if self.error is not None:
                raise Cancelled("the run ended before this task began")
            result = work()
        except BaseException as error:
            value.set_error(as_plugin_error(error, "a task of the work queue"))
            if is_interrupt(error):
                raise
        else:
            if isinstance(result, AsyncValue):
                value.forward_to(result)
            else:
                value.emplace(result)
        self._go_on()

    def detach(self) -> None:
        """Detach: the caller does not wait. The work queue finishes the step, or a timer at its deadline."""
        if self._loops:
            if self.deadline is not None:
                self._alarm = Timer(max(self.deadline - monotonic(), 0), self.cancelled)
                self._alarm.daemon = True
                self._alarm.start()
            self.loop.detach()
        else:
            self.close()

    def cancelled(self) -> bool:
        """True when the step must end. Kernels that take long poll this."""
        if self.deadline is not None and self.error is None and monotonic() >= self.deadline:
            self.cancel(DeadlineExceeded(f"the run took longer than its timeout of {self._timeout} s"))
        return self.error is not None

    def check(self) -> None:
        """Raises the step's error when the step must end."""
        if self.cancelled():
            raise self.error  # type: ignore[misc]

    def end_error(self) -> HealdError:
        """Return the error of a stopped run; Cancelled when a lasting step has been restarted since."""
        return self.error or Cancelled("the run was cancelled")

    @contextmanager
    def holding(self, lock: Lock | RLock) -> Iterator[None]:
        """Hold a lock that another thread may hold for long.

        Raises the step's error when the step ends while it waits.
        """
        while not lock.acquire(timeout=LOCK_SLICE_SECONDS):
            self.check()
        try:
            yield
        finally:
            lock.release()

    def cancel(self, error: HealdError) -> None:
        """End the step with this error, unless it has an error already."""
        if self.error is None:
            self.error = self._first.setdefault(None, error)
            self.host.stop(self)
        self._ended.cancel()

    def parallel_for(self, count: int, work: Callable[[int], object]) -> None:
        """Call `work` with every index below `count`, on this thread and on idle threads of the work queue.

        Returns when all calls have ended. After a failure no new calls start; when the started ones have ended, the
        first error is raised. For kernels that split their work into parts of 100 us or more.
        """
        from ..host.parallel import Job

        Job(self.workers, [0] * count, [()] * count, lambda _, number: work(number)).run()

    def on_cancel(self, callback: Callable[[], Any]) -> int:
        """Call back when the step must end, at once if it must already. Returns a handle for `forget`."""
        return self._ended.on_cancel(callback)

    def forget(self, handle: int) -> None:
        self._ended.forget(handle)

    def restart(self) -> None:
        """Clear the cancellation, so that the step serves further runs."""
        self.error = None
        self._first.clear()
        self._ended = CancelToken()

    def close(self) -> None:
        """End the step: its parents forget it, it drops its error, and its trace gets the times of devices.

        The error's traceback may hold all values of the run.
        """
        if self.error is not None:
            self.error = self._first[None] = Cancelled("the run ended before this work was done")
        for parent, number in self._parents:
            parent.forget(number)
        self.forget(self._aborts)
        if self._alarm is not None:
            self._alarm.cancel()
        self._meeting.clear()
        self._is_over = True
        self._loops.clear()
        if self.trace is not None:
            self.trace.settle()
        self.host.device_memory.drain(self._owned)

    def _cancel_by_parent(self) -> None:
        self.cancel(Cancelled("the run was cancelled"))


def lasting_step(host: Host, resources: Resources) -> Step:
    """Return a step shared by all runs that need none of their own.

    Cancelling the host cancels it; `restart` revives it.
    """
    step = Step(host, resources=resources, ends_at_error=True)
    host.lasting[id(step)] = step
    if host.cancellation.is_cancelled:
        step.cancel(Cancelled("the host was cancelled"))
    return step
