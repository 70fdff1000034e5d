"""Executable: a linked function, whose runs each have a frame of their own.

A run fills registers and calls the frame's flat list in order. Nothing is looked up or tested per call. The first
exception ends the step. The list's iterator tells which call raised it, at no cost to the other calls. A cancelled step
ends through the same iterator (`Cursor.stop`). Only a step with a deadline or a trace does work between calls.

Results belong to the user: an array that this run did not make itself is copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ...errors import Cancelled, DeadlineExceeded, HealdError, InvalidArgument
from ..contract.device import STREAM, Device
from ..host.bound_call_cache import bytes_of_call
from ..host.kernel_context import KernelContext
from ..program.host_program import ProgramFunction
from ..support.fault_place import method_of
from ..support.kernel_errors import as_heald_error, is_interrupt, kernel_fault
from ..values.async_value import DEAD, AsyncValue, available, failed, payload_of
from ..values.tensor import TensorMetadata
from .autotune import Autotuner
from .bound_call import BoundCall
from .dataflow import Dataflow
from .frame import Cursor, Frame
from .frame_calls import FrameCall, HandOver
from .frame_factory import FrameFactory
from .frame_layout import FrameLayout
from .fresh_calls import FreshCalls
from .parallel_schedule import by_device, divided
from .replay import capture, told
from .schedule import CallEach, Schedule
from .step import Step

if TYPE_CHECKING:
    from ..host.host import Host
    from .device_clock import Timed
    from .trace import Trace

FREE_FRAMES = 8  # idle frames kept for reuse; more concurrent steps make further frames
FREE_BYTES = 64 << 20  # bytes of memory plans in idle frames; one frame is kept, however large it is


class Executable:
    """A function linked for given argument metadata. Several threads may run it at once.

    `declined`: node to the (pack, reason) pairs of preferred kernels that declined it.
    `callees`: the functions that are linked for its calls.
    `checks_arguments`: True when kernels may call it with any arguments: each call compares them with their metadata.
    `layout`: the properties of its frames, which `make_frame` makes.
    `autotuner`: holds the schedule of the next run.
    """

    def __init__(
        self, function: ProgramFunction, metas: Sequence[TensorMetadata], calls: Sequence[BoundCall],
        presets: Mapping[int, Any], devices: Mapping[str, Device], host: Host,
        declined: Mapping[str, Sequence[tuple[str, str]]], callees: Sequence[Executable] = (),
        *, checks_arguments: bool = False,
    ) -> None:
        self.function = function
        self._callees = callees
        self.metas = tuple(metas)
        self.declined = declined
        self.layout = FrameLayout(function, metas, calls, presets, poison=host.debug.poison)
        self.make_frame = FrameFactory(self.layout, host).make
        self._fresh_calls = FreshCalls(self.layout, host)
        self._host = host
        self._device_names = {id(None): "host"} | {id(device): name for name, device in devices.items()}
        self._asynchronous = [d for d in devices.values() if not d.attributes.get("host_visible")]
        self.is_asynchronous = self.layout.is_asynchronous  # then each run needs a Step of its own
        self._count = len(function.arg_names)
        self._checks_arguments = checks_arguments
        self._open = self.layout.open
        self._late = sorted(self.layout.late)
        self._pends = any(call.pends for call in self.layout.calls)
        self._results = function.results
        producers = (self.layout.producer[r] for r in function.results if r in self.layout.producer)
        self._looks_at_results = self._pends or any(bound.may_give_dead for bound in producers)
        self._copied = self.layout.copied_results
        self._pick = _picker(function.results)
        run_flat = _run_one if len(self.layout.flat) == 1 else _run_flat
        self._flat = flat = Schedule(self.make_frame, run_flat, _run_flat_each)
        # approximate
        self.nbytes: int = sum(bytes_of_call(bound.bound) for bound in calls) + sum(each.nbytes for each in callees)
        self._frame_bytes = self.layout.plan.nbytes
        self._most_free = max(1, min(FREE_FRAMES, FREE_BYTES // max(self._frame_bytes, 1)))
        host.memory.may_drop(flat.frames)
        is_fixed = bool(self._asynchronous) or len(self.layout.flat) < 2 or self.layout.is_in_order
        apart = None if is_fixed else by_device(self.layout, host, flat)
        self.autotuner = Autotuner(flat, partial(divided, self.layout, host, flat), apart)
        if is_fixed:
            self.autotuner.schedule = flat

    @property
    def frame_bytes(self) -> int:
        """Bytes of the memory plans in idle frames, with those of its callees."""
        own = len(self.autotuner.schedule.frames) * self._frame_bytes
        return own + sum(callee.frame_bytes for callee in self._callees)

    def all(self) -> Iterator[Executable]:
        """Yield the function and all functions that are linked for it."""
        left = [self]
        while left:
            each = left.pop()
            yield each
            left += each._callees

    def device_name(self, bound: BoundCall) -> str:
        """Return the short name of a call's device, or "host"."""
        return self._device_names[id(bound.device)]

    def algorithms(self) -> dict[str, str]:
        """Return by node the kernel's description of its algorithm, and the way in which a device that can replay
        kernels launches it."""
        launched = told(self.layout)
        ways = ((bound.call, "; ".join(filter(None, (bound.how, launched.get(number)))))
                for number, bound in enumerate(self.layout.calls))
        return {node: how for call, how in ways if how for node in call.fused or (call.node,)}

    def run(self, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Run the calls and return the results: arrays of exactly the linked metadata, contiguous and aligned.

        Raises the typed error of the first call that fails, with its node, op and device; the step is quiet by then.
        Raises Unavailable when a device was lost before.
        """
        if self._asynchronous:
            self._host.check(self._asynchronous)
        schedule = self.autotuner.schedule
        try:
            frame = schedule.frames.pop()
        except IndexError:
            frame = schedule.make_frame()
        registers = frame.registers
        registers[: self._count] = feeds
        for i, copy in frame.copies:
            copy[...] = feeds[i]
        registers[-1] = step
        left = self._late
        try:
            if step.is_plain:
                frame.context.run(schedule.run, frame, step)
            else:
                frame.context.run(schedule.run_each, self._call_each, frame, step)
        except HandOver:
            left = self.layout.after(frame.position(), without=True)
        except BaseException as error:
            # The typed error is not kept in a local variable: its traceback would hold itself and the frame.
            if is_interrupt(error):
                self._keep(frame)
                raise
            if isinstance(error, HealdError) and (error is step.error or not frame.cursor.is_stopped):
                self._abort(error, frame, step, schedule)
                raise
            raise self._abort(error, frame, step, schedule) from error
        values = registers
        if self.is_asynchronous and (left or self._looks_at_results or step.has_loop):
            values = self._finish(frame, step, left)
        if self._asynchronous:
            frame.context.run(self._synchronize, frame)
            self._host.device_memory.drain(frame.lent)
            self._host.device_memory.free_dropped()
            if frame.uncaptured:
                self._capture(frame)
        results = self._pick(values)
        if self._copied:
            for i in self._copied:
                results[i] = self._copy(results[i])
        for register in self._open:
            registers[register] = None
        if len(schedule.frames) < self._most_free:
            schedule.frames.append(frame)
        return results

    def _capture(self, frame: Frame) -> None:
        """Capture the segments of a frame that ran for the first time. Raises the typed error of a device."""
        segments, frame.uncaptured = frame.uncaptured, ()
        for segment in segments:
            try:
                frame.context.run(capture, frame, segment)
            except Exception as error:
                raise self._host.fault(segment.device, error) from error

    def _abort(self, error: BaseException, frame: Frame, step: Step, schedule: Schedule) -> HealdError:
        """Return the typed error of the call that raised, or of the cancelled step, once all started work is quiet.

        The frame is given up when devices or abandoned kernels may still use it.
        """
        typed = step.end() if frame.cursor.is_stopped else self._typed_at(error, frame)
        frame.context.run(self._quiet)
        if self.is_asynchronous:
            step.cancel(typed)
            self._dataflow(frame.registers, (), step, stop=True)
            step.loop.run()
        elif not self._asynchronous:
            self._free(frame, schedule)
        return typed

    def _finish(self, frame: Frame, step: Step, left: Sequence[int]) -> list[Any]:
        """Run the remaining calls in a Dataflow and return the values of all registers.

        Raises the step's error. The frame is then given up, since abandoned kernels may still use it.
        """
        run_tail = None if frame.tail is None else partial(self._run_tail, frame, frame.tail, step)
        rest = self._dataflow(frame.registers, left, step, stop=True, run_tail=run_tail)
        step.loop.run()
        if step.error is not None:
            frame.context.run(self._quiet)
            rest.values.clear()  # the values hold the error, whose traceback holds this frame
            frame.registers.clear()
            raise step.error
        for register in self._results:
            if rest.values[register] is DEAD:
                raise self._dead(register)
        return rest.values

    def _run_tail(self, frame: Frame, tail: Frame, step: Step, values: list[Any]) -> bool:
        """Run the layout's tail attached over these values. Return False, and run nothing, when one of them is dead.

        An error becomes the step's error.
        """
        if step.error is not None or any(isinstance(values[r], AsyncValue) for r in self.layout.tail_needs):
            return False
        registers = frame.registers
        for register in self.layout.tail_needs:
            registers[register] = values[register]
            if register not in self._results:
                values[register] = None
        try:
            if step.is_plain:
                _run_flat(tail, step)
            else:
                _run_flat_each(self._call_each, tail, step)
        except BaseException as error:  # a kernel may raise any exception
            if is_interrupt(error):
                raise
            if step.error is None:
                step.cancel(self._typed_at(error, tail))
        for register in self._results:
            if register in self.layout.tail_gives:
                values[register] = registers[register]
        return True

    def _dead(self, register: int) -> InvalidArgument:
        """Return the error for a dead result, as TensorFlow's session raises it."""
        call = next(bound.call for bound in self.layout.calls if register in bound.call.results)
        tensor = f"{call.node}:{call.results.index(register)}"
        return InvalidArgument(f"the fetched tensor '{tensor}' is dead: control flow did not take its branch",
                               node=call.node, hint="fetch what a Merge makes of it")

    def start(self, arguments: Sequence[Any], step: Step) -> list[AsyncValue]:
        """Start a run and return its results, which may come later and belong to the caller.

        `step.loop` runs the remaining calls. A failed call fails its dependents, and no other call. Raises Unavailable
        when a device was lost before.
        """
        results = KernelContext().run(self.invoke, [payload_of(a) for a in arguments], step)
        values = [value if isinstance(value, AsyncValue) else available(value) for value in results]
        for i in self._copied:
            values[i] = self._own(values[i])
        return values

    def invoke(self, arguments: Sequence[Any], step: Step) -> list[Any]:
        """Run for a kernel of the same step, in its context. Return payloads where they are available, else
        AsyncValues.

        Results may be the arguments or constants of the program, which nobody writes. In a step that ends at errors
        the first error is raised.
        """
        if self._asynchronous:
            self._host.check(self._asynchronous)
        if self._checks_arguments:
            arguments = self.layout.check_arguments(self.function, arguments)
        try:
            frame = self._flat.frames.pop()
        except IndexError:
            frame = self._flat.make_frame()
        registers = frame.registers
        registers[: self._count] = arguments
        registers[-1] = step
        left: Sequence[int] = self._late
        for argument in arguments:
            if argument.__class__ is AsyncValue:
                registers[: self._count] = given = [payload_of(a) for a in arguments]
                if any(a.__class__ is AsyncValue for a in given):
                    left = range(len(self.layout.calls))
                    break
        else:
            for i, copy in frame.copies:
                copy[...] = registers[i]
            try:
                if step.is_plain:
                    self._flat.run(frame, step)
                else:
                    _run_flat_each(self._call_each, frame, step)
            except HandOver:
                left = self.layout.after(frame.position(), without=True)
            except BaseException as error:  # a kernel may raise any exception, which becomes its results
                if is_interrupt(error):
                    raise
                if step.ends_at_error:
                    raise self._raised(error, frame, step)  # noqa: B904 - the cause is set there
                left = () if step.error is not None else self._fail(error, frame)
            else:
                if not left and not self._pends and not self._asynchronous:
                    results = self._pick(registers)
                    for register in self._open:
                        registers[register] = None
                    if len(self._flat.frames) < self._most_free:
                        self._flat.frames.append(frame)
                    return results
        has_ended = step.error is not None  # then the position may mean nothing, and no result is known to exist
        rest = self._dataflow(registers, () if has_ended else left, step, stop=step.ends_at_error)
        if self._asynchronous:
            self._keep(frame)
        registers.clear()  # an error that is a result lives on, and its traceback may hold this frame
        if has_ended:
            return self._left_by_end(rest.values, step)
        return [rest.value(register) for register in self._results]

    def _left_by_end(self, values: list[Any], step: Step) -> list[Any]:
        """Return the results that exist at the end of a cancelled step, and its error for the others.

        Chains are among the others, and so are tensors: their arrays may be unwritten. The values are dropped.
        """
        opaque = self.layout.opaque
        results = [values[r] if r in opaque else None for r in self._results]
        values[:] = [None] * len(values)
        is_left = [not (each.is_available() if isinstance(each, AsyncValue) else each is not None) for each in results]
        return [failed(step.end()) if left else each for left, each in zip(is_left, results, strict=True)]

    def _raised(self, error: BaseException, frame: Frame, step: Step) -> HealdError:
        """Return the typed error of the call that raised. The frame is free unless devices may still use it."""
        typed = step.end() if frame.cursor.is_stopped else self._typed_at(error, frame)
        if not self.is_asynchronous and not self._asynchronous:
            self._free(frame, self._flat)
        if typed is not error:
            typed.__cause__ = error
        return typed

    def _free(self, frame: Frame, schedule: Schedule) -> None:
        """Drop the values of a run and make the frame idle. (`run` repeats these lines: a call would cost more.)"""
        for register in self._open:
            frame.registers[register] = None
        if len(schedule.frames) < self._most_free:
            schedule.frames.append(frame)

    def _fail(self, error: BaseException, frame: Frame) -> list[int]:
        """Make the error of the failed call its results. Return the indices of the remaining calls."""
        position = frame.position()
        failure = failed(self._typed_at(error, frame))
        for register in self.layout.calls[self.layout.flat[position]].call.gives:
            frame.registers[register] = failure
        return self.layout.after(position, without=True)

    def _own(self, value: AsyncValue) -> AsyncValue:
        """Return a copy of a result, as soon as the result is available."""
        if value.is_available():
            try:
                return value if value.is_error() or value.is_dead() else available(self._copy(value.get()))
            except Exception as error:  # noqa: BLE001 - memory may be short, and only the value can report it
                return failed(as_heald_error(error, "copying a result"))
        own = AsyncValue()
        value.and_then(lambda: own.forward_to(self._own(value)))
        return own

    def _call_each(self, index: int, call: FrameCall, frame: Frame, step: Step) -> None:
        """Run one call of the flat list in a step that has a deadline or a trace."""
        started = perf_counter_ns()  # before the check: a trace shows no start after the end of the step
        if step.cancelled():
            raise step.error  # type: ignore[misc]
        trace = step.trace
        if trace is None:
            call()
            return
        bound = self.layout.calls[frame.numbers[index]]
        timed = trace.begin(bound.device)
        call()
        if timed is not None:
            timed.end()
        self._record(trace, bound, started, [frame.registers[r] for r in bound.given], timed)

    def _record(
        self, trace: Trace, bound: BoundCall, started: int, values: Sequence[Any], timed: Timed | None
    ) -> None:
        """Record a call that has just returned these values for the registers that it gives."""
        metas = [self.metas[r] for r in bound.call.gives]
        trace.record(bound.call, self.device_name(bound), started, values, metas, self.function.name, timed)

    def _copy(self, array: Any) -> Any:
        copy = self._host.memory.maker(array.shape, array.dtype, "the copy of a result")()
        copy[...] = array
        return copy

    def _dataflow(
        self, registers: list[Any], calls: Sequence[int], step: Step, *, stop: bool,
        run_tail: Callable[[list[Any]], bool] | None = None,
    ) -> Dataflow:
        return Dataflow(self.layout, self._fresh_calls, calls, list(registers[:-1]), step, stop=stop, typed=self._typed,
                        record=self._record, run_tail=run_tail)

    def _synchronize(self, frame: Frame) -> None:
        """Wait until the devices have done all enqueued work. Raises their errors, typed, with the device."""
        for device in self._asynchronous:
            try:
                device.synchronize(device.record(STREAM))
            except BaseException as error:
                self._keep(frame)
                if is_interrupt(error):
                    raise
                raise self._host.fault(device, error)  # noqa: B904 - the cause is set there

    def _quiet(self) -> None:
        """Wait for enqueued work of a failed step: it reads feeds, which the user may change or drop afterwards."""
        for device in self._asynchronous:
            with suppress(Exception):  # the first error is the one to report
                device.synchronize(device.record(STREAM))

    def _keep(self, frame: Frame) -> None:
        """Keep the registers of an abandoned frame alive until the devices have done with them."""
        registers = list(frame.registers)
        for device in self._asynchronous:
            with suppress(Exception):  # a lost device uses no memory any more
                self._host.waiter(device).keep(frame, registers)

    def _typed_at(self, error: BaseException, frame: Frame) -> HealdError:
        """Return the typed error for an exception of the call at the frame's cursor."""
        if not frame.numbers:
            return self._typed(error, None)
        return self._typed(error, self.layout.calls[frame.numbers[frame.position()]])

    def _typed(self, error: BaseException, bound: BoundCall | None) -> HealdError:
        """Return the typed error for an exception of a call. Exceptions of kernels become heald's only here."""
        if bound is None:
            return as_heald_error(error, "the run")
        if isinstance(error, Cancelled | DeadlineExceeded):
            return error
        call = bound.call
        if bound.device is not None and (bound.kernel is None or method_of(error, bound.device) is not None):
            typed = self._host.fault(bound.device, error)
            typed.at(node=call.node, op=call.op, location=call.location)
            self._host.report(typed)
            return typed
        what = f"kernel {call.code}"
        typed = as_heald_error(error, what) if bound.kernel is None else kernel_fault(error, what, bound.kernel)
        if bound.device is None:
            typed.at(node=call.node or None, op=call.code, location=call.location)
        else:
            typed.at(node=call.node, op=call.op, device=self._device_names[id(bound.device)], location=call.location)
            self._host.note_failure(bound.device, typed)
        self._host.report(typed)
        return typed


def _picker(results: Sequence[int]) -> Callable[[list[Any]], list[Any]]:
    """Return a function that picks the results from all registers.

    (For one result, a comprehension takes three times as long.)
    """
    if len(results) == 1:
        (only,) = results
        return lambda registers: [registers[only]]
    return lambda registers: [registers[r] for r in results]


def _run_one(frame: Frame, step: Step) -> None:
    """Run a flat list of one call. The cursor already stands at it."""
    if step.error is not None:
        raise step.error
    frame.calls[0]()


def _run_flat(frame: Frame, step: Step) -> None:
    frame.cursor = cursor = Cursor()
    cursor.calls = calls = iter(frame.calls)
    if step.error is not None:  # tested after the cursor is set: a cancellation sets the error, then stops the cursors
        raise step.error
    for call in calls:
        call()
    if cursor.is_stopped:
        raise step.end()


def _run_flat_each(call_each: CallEach, frame: Frame, step: Step) -> None:
    frame.cursor = cursor = Cursor()
    cursor.calls = calls = iter(frame.single or frame.calls)
    if step.error is not None:
        raise step.error
    for index, call in enumerate(calls):
        call_each(index, call, frame, step)
    if cursor.is_stopped:
        raise step.end()
