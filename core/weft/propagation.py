"""The executor's second speed: calls run when their arguments are available, wherever those come from.

A call is ready when all arguments are there (non-strict: one of them); an error or death among them becomes its
results, and it is not run. One thread, the one that waits for the step, drives: it runs what is ready in the order of
the program, and sleeps while nothing is. Others only put completed values into its mailbox.

Nothing here writes memory of the plan: calls are not in the order that it was made for. Results are new arrays.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic, perf_counter_ns
from typing import Any

from .async_value import DEAD, AsyncValue, available, failed
from .errors import Cancelled, WeftError
from .frame import BoundCall, FrameLayout
from .step import Step
from .trace import Trace

DEAF = 0.5  # seconds that a step waits, once it must end, for kernels that have started
MISSING: Any = object()  # what a register holds that a call has yet to fill


class Propagation:
    """Runs the calls of `layout` with these numbers over `values`, a register's payload or AsyncValue each.

    `stop`: the first error ends the step (a session's run); otherwise independent calls go on (a host program's).
    `typed(error, call)` is the typed error for what a call raised.
    """

    def __init__(
        self, layout: FrameLayout, calls: Sequence[int], values: list[Any], step: Step, *, stop: bool,
        typed: Callable[[Exception, BoundCall], WeftError], device_names: Mapping[int, str],
    ) -> None:
        self._device_names = device_names
        self.values = values
        self._layout = layout
        self._step = step
        self._stop = stop
        self._typed = typed
        self._ready: list[int] = []
        self._users: dict[int, list[int]] = {}  # register -> calls that wait for it
        self._missing: dict[int, int] = {}  # call -> how many of its arguments are not there
        self._promises: dict[int, list[AsyncValue]] = {}  # register -> what non-strict calls were given for it
        self._in_flight: set[int] = set()  # registers whose value is pending, or is in the mail
        self._lock = threading.Lock()
        self._mail: deque[tuple[int, AsyncValue]] = deque()
        self._wake: AsyncValue | None = None
        for number in calls:
            for register in layout.calls[number].call.results:
                values[register] = MISSING
        for register, value in enumerate(values):
            if isinstance(value, AsyncValue):
                self._receive(register, value)
        for number in calls:
            self._enter(number)

    def run(self) -> None:
        """Until nothing is left to run, or the step has ended and is quiet."""
        token = self._step.on_cancel(self._ring)
        try:
            while not self._step.cancelled():
                if self._ready:
                    self._run_call(heapq.heappop(self._ready))
                elif self._in_flight:
                    self._wait(None if self._step.deadline is None else max(self._step.deadline - monotonic(), 0))
                    self._open_mail()
                else:
                    return
            self._drain()
        finally:
            self._step.forget(token)
            self._break_promises()

    def _drain(self) -> None:
        """The step has ended: wait for what has started, for a while."""
        end = monotonic() + DEAF
        while self._in_flight and (left := end - monotonic()) > 0:
            self._wait(left)
            self._open_mail()

    def _break_promises(self) -> None:
        """What non-strict calls still wait for will not come."""
        for promises in self._promises.values():
            for promise in promises:
                promise.set_error(self._step.error or Cancelled("the run has ended"))
        self._promises.clear()

    def _enter(self, number: int) -> None:
        call = self._layout.calls[number]
        needed = {r for r in call.call.args if self._awaited(r)}
        self._missing[number] = len(needed)
        for register in needed:
            self._users.setdefault(register, []).append(number)
        nonstrict = call.kernel is not None and call.kernel.nonstrict
        if not needed or (nonstrict and len(needed) < len(set(call.call.args))):
            self._missing[number] = 0
            heapq.heappush(self._ready, number)

    def _awaited(self, register: int) -> bool:
        return self.values[register] is MISSING or register in self._in_flight

    def _run_call(self, number: int) -> None:
        call = self._layout.calls[number]
        strict = call.kernel is None or not call.kernel.nonstrict
        arguments = [self.values[r] for r in call.call.args]
        stopped = next((v for v in arguments if isinstance(v, AsyncValue) and v.is_error()), None)
        stopped = stopped or next((v for v in arguments if v is DEAD), None)
        if strict and stopped is not None:
            self._finish(call, [stopped] * len(call.call.results), None)
            return
        if not strict:
            arguments = [v if isinstance(v, AsyncValue) else self._wrapped(r, v)
                         for r, v in zip(call.call.args, arguments, strict=True)]
        started = perf_counter_ns()
        # No local variable here may hold an error: its traceback leads through this frame.
        self._finish(call, self._results(number, call, arguments), started)

    def _results(self, number: int, call: BoundCall, arguments: list[Any]) -> list[Any]:
        """What a call gives, errors included."""
        try:
            return self._layout.fresh(number)(self._step, arguments)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything; it becomes its results
            return self._failed(self._typed(error, call), len(call.call.results))

    def _failed(self, error: WeftError, count: int) -> list[Any]:
        if self._stop:
            self._step.cancel(error)
        return [failed(error)] * count

    def _record(self, trace: Trace, call: BoundCall, results: Sequence[Any], started: int) -> None:
        name = self._device_names[id(call.device)]
        trace.record(call.call, name, started)
        for value in results:
            if call.lends and isinstance(value, AsyncValue):
                trace.follow(call.call, name, value, started)

    def _wrapped(self, register: int, value: Any) -> AsyncValue:
        """An argument of a non-strict call as an AsyncValue, also one that no call has filled yet."""
        if value is not MISSING:
            return available(value)
        promise = AsyncValue()
        self._promises.setdefault(register, []).append(promise)
        return promise

    def _finish(self, call: BoundCall, results: Sequence[Any], started: int | None) -> None:
        if self._step.trace is not None and started is not None:
            self._record(self._step.trace, call, results, started)
        for register, value in zip(call.call.results, results, strict=True):
            if isinstance(value, AsyncValue):
                self._receive(register, value)
            else:
                self._fill(register, value)

    def _receive(self, register: int, value: AsyncValue) -> None:
        """A value that may come later: the register holds it until then."""
        if value.is_available():
            self._fill(register, value)
            return
        self.values[register] = value
        self._in_flight.add(register)
        value.and_then(partial(self._post, register, value))

    def _fill(self, register: int, value: Any) -> None:
        if isinstance(value, AsyncValue):
            value = self._settled(register, value)
        self.values[register] = value
        for promise in self._promises.pop(register, ()):
            promise.forward_to(value if isinstance(value, AsyncValue) else available(value))
        for number in self._users.pop(register, ()):
            kernel = self._layout.calls[number].kernel
            if self._missing[number]:
                self._missing[number] = 0 if kernel is not None and kernel.nonstrict else self._missing[number] - 1
                if not self._missing[number]:
                    heapq.heappush(self._ready, number)

    def _settled(self, register: int, value: AsyncValue) -> Any:
        """An available AsyncValue as a register holds it: the payload, DEAD, or the error with its place."""
        if value.is_dead():
            return DEAD
        if value.error is None:
            return self._layout.payload(value.get())
        call = self._layout.producer.get(register)
        error = self._typed(value.error, call) if call is not None else value.error
        if self._stop:
            self._step.cancel(error)
        return value

    def _post(self, register: int, value: AsyncValue) -> None:
        """Called on any thread: a value that was pending is available."""
        with self._lock:
            self._mail.append((register, value))
        self._ring()

    def _ring(self) -> None:
        with self._lock:
            wake, self._wake = self._wake, None
        if wake is not None:
            wake.emplace(None)

    def _wait(self, timeout: float | None) -> None:
        """Until there is mail, the step is cancelled, or the time is over."""
        wake = AsyncValue()
        with self._lock:
            if self._mail or (self._step.error is not None and timeout is None):
                return  # who cancels rings, but may have done so before there was a bell
            self._wake = wake
        self._step.host.work_queue.await_values([wake], timeout)

    def _open_mail(self) -> None:
        while self._mail:
            register, value = self._mail.popleft()
            self._in_flight.discard(register)
            self._fill(register, value)
