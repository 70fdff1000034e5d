"""DataflowRun: runs calls when their arguments are available, in any order.

A register holds one of four things: MISSING (its call has not run), a pending AsyncValue, a payload, or an available
AsyncValue, which is an error or DEAD. It goes through these states in this order and never back.

A call goes through three states.
- Waiting: `_missing_counts` has the number of its needed registers without an available value.
- Ready: the count is 0, and the step's loop has the call. A non-strict call is ready with one available argument.
- Done: the call has left `_remaining`. It ran, or an error or a dead value among its needed values became its results.

Invariants:
- The flat list ran all calls that depend on nothing pending, or stopped in the call that returned a pending value
  (`HandOver`). The DataflowRun gets the other calls.
- A DataflowRun writes no memory of the plan, since the plan holds for the order of attached calls only. The results of
  its calls are new arrays.
- Once nothing is pending and no remaining call may pend, all remaining calls run in order, as one entry of the loop
  (ALL_REMAINING). The layout's tail then runs attached, through `run_tail`, unless a dead value stands before it.
- A value dies with its last consumer: `_consumers_left` counts down. Results, and values that the tail needs, have a
  negative count, which never becomes 0.
- Control inputs (`after`) count as needed values. Their errors stop a call; their deadness stops a strict call only.

Termination: every call needs earlier calls only, and a call that is done makes all its results available or pending. So
a call stays in the waiting state only behind a pending value, and the end of the step breaks all promises.

Rule: the thread that drives the step is the only caller of all methods, so no counter has a lock. A change that lets
another thread in must post to the loop instead. No local variable of a method that calls kernels may hold an error: its
traceback leads through this frame and would keep all values alive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ...errors import HealdError
from ..support.kernel_errors import as_heald_error, is_interrupt
from ..values.async_value import DEAD, AsyncValue, available, failed
from .call_level import at_level, current_level
from .calls.bound_call import BoundCall
from .frame_layout import FrameLayout
from .fresh_calls import FreshCalls

if TYPE_CHECKING:
    from .device_clock import Timed
    from .step import Step
    from .trace import Trace

Record = Callable[["Trace", BoundCall, int, Sequence[Any], "Timed | None"], None]

MISSING: Any = object()  # in a register that a call has yet to fill
ALL_REMAINING = -1  # in place of a call's index: all remaining calls


class DataflowRun:
    """Runs the calls of `layout` with the indices `calls` over `values`, one payload or AsyncValue per register.

    `stop`: True when the first error ends the step (a session's run). Otherwise independent calls go on (a host
        program's run).
    `typed(error, call)`: returns the typed error for an exception of a call.
    `record(trace, call, started, values, timed)`: records a call that has just returned.
    `run_tail(values)`: runs the layout's tail attached. Returns False, and has run nothing, when a value is dead. By
        default the tail runs like all other calls.
    """

    def __init__(
        self, layout: FrameLayout, fresh_calls: FreshCalls, calls: Sequence[int], values: list[Any], step: Step, *,
        stop: bool, typed: Callable[[BaseException, BoundCall], HealdError], record: Record,
        run_tail: Callable[[list[Any]], bool] | None = None,
    ) -> None:
        self.values = values
        self.rank = step.loop.next_rank()
        self._record = record
        self._order = order = layout.order
        self._registers = layout.registers
        self._lasting = layout.lists.deaths.lasting
        self._fresh_calls = fresh_calls
        self._step = step
        self._ends_at_error = stop
        self._typed = typed
        self._run_tail = run_tail
        self._level = current_level()
        self._waiting_calls: dict[int, list[int]] = {}  # register -> calls that wait for it
        self._missing_counts: dict[int, int] = {}  # call -> number of needed values that are not available
        self._without_argument: set[int] = set()  # non-strict calls without any available argument
        self._promises: dict[int, list[AsyncValue]] = {}  # register -> promises of its value
        self._pending: set[int] = set()  # registers that hold a pending value
        if run_tail is not None:
            calls = calls[: len(calls) - len(order.tail)]
        self._remaining = dict.fromkeys(calls)  # calls that have not run, in order; without the tail
        self._consumers_left: dict[int, int] = {}  # by register; a value dies with its last consumer
        self._may_pend = sum(order.calls[number].may_pend for number in calls)  # of the remaining calls
        self._expect(calls)
        for register, value in enumerate(values):
            if isinstance(value, AsyncValue):
                self._receive(register, value)
        if not self._queue_remaining():
            for number in calls:
                self._await_arguments(number)

    def value(self, register: int) -> AsyncValue:
        """Return the register's value, or a promise of it."""
        value = self.values[register]
        if value is not MISSING and register not in self._pending:
            return value if isinstance(value, AsyncValue) else available(value)
        promise = AsyncValue()
        self._promises.setdefault(register, []).append(promise)
        self._step.loop.register_promises(self)
        return promise

    def break_promises(self, error: AsyncValue) -> None:
        """Complete all open promises with this error, at the end of the step."""
        promises, self._promises = self._promises, {}
        for waiting in promises.values():
            for promise in waiting:
                promise.forward_to(error)

    def run(self, number: int) -> None:
        """Run the ready call with this index, or with ALL_REMAINING all remaining calls."""
        at_level(self._level, self._run, number)

    def _run(self, number: int) -> None:
        if number != ALL_REMAINING:
            if number in self._remaining:
                self._run_call(number)
            return
        self._run_in_order()
        run_tail, self._run_tail = self._run_tail, None
        if run_tail is not None and not run_tail(self.values):
            self._remaining = dict.fromkeys(self._order.tail)
            self._expect(self._order.tail)
            self._run_in_order()

    def _run_in_order(self) -> None:
        step = self._step
        for number in list(self._remaining):
            if step.error is not None or (step.deadline is not None and step.cancelled()):
                return
            self._run_call(number)

    def _expect(self, calls: Sequence[int]) -> None:
        """Mark the registers that these calls will fill, and count the consumers of each value."""
        order = self._order
        for number in calls:
            for register in order.gives[number]:
                self.values[register] = MISSING
            for register in order.needs[number]:
                self._consumers_left[register] = self._consumers_left.get(register, 0) + 1
        # never 0: the caller or the tail takes the value
        results = self._registers.results
        self._consumers_left.update(dict.fromkeys(results, -1) if self._run_tail is None else self._lasting)

    def _queue_remaining(self) -> bool:
        """Queue all remaining calls at once when no value is pending and no remaining call may pend.

        The remaining calls then run in order, without counters. Returns True when the calls were queued.
        """
        if self._pending or self._may_pend or not (self._remaining or self._run_tail):
            return False
        self._step.loop.queue_call(self, ALL_REMAINING)
        return True

    def _run_call(self, number: int) -> None:
        call = self._order.calls[number]
        del self._remaining[number]
        self._may_pend -= call.may_pend
        if number in self._order.nonstrict:
            arguments: list[Any] = [self.value(r) for r in call.call.args]
            stopped = None
        else:
            values = self.values
            arguments = [values[r] for r in call.call.args]
            stopped = _stopping_value(arguments)
        if call.call.after and stopped is None:
            stopped = _stopping_value([self.values[r] for r in call.call.after])
            if stopped is not None and number in self._order.nonstrict and not stopped.is_error():
                stopped = None  # dead control inputs do not kill a Merge
        if stopped is not None:
            self._finish(number, call, [stopped] * len(self._order.gives[number]), None)
            return
        started = 0
        if self._step.trace is not None:
            started = perf_counter_ns()
            if self._step.error is not None:  # after the clock: a trace shows no start after the step's end
                return
        # No local variable here may hold an error: its traceback leads through this frame.
        self._finish(number, call, *self._results(number, call, arguments), started=started)

    def _results(self, number: int, call: BoundCall, arguments: list[Any]) -> tuple[list[Any], Timed | None]:
        """Run a call and return its values, and its times on a device. An exception becomes all values."""
        try:
            timed = None if self._step.trace is None else self._step.trace.begin(call.device)
            results = self._fresh_calls.call(number)(self._step, arguments)
            if timed is not None:
                timed.mark_end()
            return results if len(results) == len(self._order.gives[number]) else [*results, None], timed
        except BaseException as error:  # a kernel may raise any exception, which becomes the results
            if is_interrupt(error):
                raise
            return self._failed_results(self._typed(error, call), len(self._order.gives[number])), None

    def _failed_results(self, error: HealdError, count: int) -> list[Any]:
        if self._ends_at_error:
            self._step.cancel(error)
        return [failed(error)] * count

    def _await_arguments(self, number: int) -> None:
        needed = {r for r in self._order.needs[number] if self.values[r] is MISSING or r in self._pending}
        for register in needed:
            self._waiting_calls.setdefault(register, []).append(number)
        if number in self._order.nonstrict:
            call = self._order.calls[number].call
            self._missing_counts[number] = len(needed.intersection(call.after))
            if call.args and needed.issuperset(call.args):
                self._missing_counts[number] += 1
                self._without_argument.add(number)
        else:
            self._missing_counts[number] = len(needed)
        if not self._missing_counts[number]:
            self._step.loop.queue_call(self, number)

    def _was_awaited(self, number: int, register: int) -> bool:
        """True when a non-strict call could not run without this value, which has just come."""
        if register in self._order.calls[number].call.after:
            return True
        is_first = number in self._without_argument
        self._without_argument.discard(number)
        return is_first

    def _finish(
        self, number: int, call: BoundCall, results: Sequence[Any], timed: Timed | None, started: int = 0
    ) -> None:
        """Store the results of a call.

        `started` is the ns at its start, 0 when it did not run or no trace is recorded.
        """
        if self._step.trace is not None and started:
            values = results if call.pends else [None if isinstance(r, AsyncValue) else r for r in results]
            self._record(self._step.trace, call, started, values, timed)
        for register in self._order.needs[number]:
            self._consumers_left[register] -= 1
            if not self._consumers_left[register]:
                self.values[register] = None
        for register, value in zip(self._order.gives[number], results, strict=True):
            if isinstance(value, AsyncValue):
                self._receive(register, value)
            else:
                self._fill(register, value)
        if call.may_pend:
            self._queue_remaining()

    def _receive(self, register: int, value: AsyncValue) -> None:
        """Store a value that may come later. The register holds it until then."""
        if value.is_available():
            self._fill(register, value)
            return
        self.values[register] = value
        self._pending.add(register)
        self._step.loop.expect(value, partial(self._arrive, register, value))

    def _arrive(self, register: int, value: AsyncValue) -> None:
        self._pending.discard(register)
        self._fill(register, value)
        self._queue_remaining()

    def _fill(self, register: int, value: Any) -> None:
        if isinstance(value, AsyncValue):
            value = self._register_form(register, value)
        self.values[register] = value if register in self._consumers_left else None
        if register in self._promises:
            for promise in self._promises.pop(register):
                promise.forward_to(value if isinstance(value, AsyncValue) else available(value))
            if not self._promises:
                self._step.loop.forget_promises(self)
        if register not in self._waiting_calls:
            return
        for number in self._waiting_calls.pop(register):
            if number not in self._order.nonstrict or self._was_awaited(number, register):
                self._missing_counts[number] -= 1
                if not self._missing_counts[number]:
                    self._step.loop.queue_call(self, number)

    def _register_form(self, register: int, value: AsyncValue) -> Any:
        """Convert an available AsyncValue to a register's form: payload, DEAD, or the error with its node."""
        if value.is_dead():
            return DEAD
        call = self._registers.producer.get(register)
        error = value.error
        if error is None:
            try:
                return self._registers.check_payload(register, value.get())
            except Exception as unfit:  # noqa: BLE001 - the kernel's payload may be any object
                error = as_heald_error(unfit, "an argument") if call is None else self._typed(unfit, call)
                return self._failed_results(error, 1)[0]
        if call is not None:
            error = self._typed(error, call)
        if self._ends_at_error:
            self._step.cancel(error)
        return value


def _stopping_value(arguments: list[Any]) -> AsyncValue | None:
    """Return the last error among the arguments, as TFRT does, else a dead value, else None."""
    stopped = None
    for value in arguments:
        if isinstance(value, AsyncValue) and (stopped is None or value.is_error()):
            stopped = value
    return stopped
