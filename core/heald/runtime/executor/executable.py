"""Executable: a linked function, whose runs each have a frame of their own.

A run fills registers and calls the frame's flat list in order. Nothing is looked up or tested per call. The first
exception ends the step. The list's iterator tells which call raised it, at no cost to the other calls. A cancelled step
ends through the same iterator (`Cursor.stop`). Only a step with a deadline or a trace does work between calls.

Results belong to the user: an array that this run did not make itself is copied first.

A stopped or failed step returns its frame, unless devices or asynchronous kernels may still use it. Copies for the
results alone are awaited once, at the end of the run.
"""

# The theory of a run
#
# `run` serves the user, `invoke` the kernels of the same step, `start` callers that do not wait. Each takes a frame,
# fills in the arguments and runs the flat list. The end of the list decides about the rest of `run`:
#
#   end of the flat list      remaining calls                      the frame afterwards
#   its last call returned    the late calls, in a DataflowRun     idle
#   HandOver                  the calls behind it, as well         idle
#   an exception of a call    none                                 idle, or given up while it may be in use
#   a stopped cursor          none                                 as after an exception
#   an interrupt (Ctrl-C)     none                                 given up
#
# Devices with queues and asynchronous kernels may use a frame after an exception. An error in the DataflowRun gives the
# frame up, too. `invoke` never returns a frame whose values went to a DataflowRun.
#
# Invariants
# - An idle frame has no value in an open register. Feeds and results do not outlive their run there.
# - A cancellation sets the step's error first and stops the cursors then. A run sets its cursor first and tests the
#   error then. So one of the two sees the other, and no cancellation is lost. A list of one call needs the test alone.
# - Idle frames need no lock: adding one and taking one are single steps of the interpreter.
# - A step is quiet when `run` raises an error other than an interrupt: no call of it will start, and the devices have
#   done its work.
#
# Rule: work between two calls belongs into `run_each`, which steps with a deadline or a trace use. `_run_flat` is the
# cost of every run.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...errors import HealdError
from ..contract.device import Device
from ..host.kernel_context import KernelContext
from ..program.host_program import ProgramFunction
from ..support.kernel_errors import as_heald_error, is_interrupt
from ..support.records import NamedTuple
from ..values.async_value import DEAD, AsyncValue, available, failed, payload_of
from ..values.tensor import TensorMetadata
from .autotune import Autotuner
from .call_reports import CallReports
from .calls.bound_call import BoundCall
from .calls.frame_calls import HandOver
from .frame import Cursor, Frame
from .frame_factory import FrameFactory
from .frame_layout import FrameLayout
from .fresh_calls import FreshCalls
from .host_array import plain_integers
from .queue_devices import QueueDevices
from .replay import describe_launches
from .schedule import CallEach, Schedule
from .step import Step

if TYPE_CHECKING:
    from ..contract.kernel import FusionRefusal
    from ..host.host import Host
    from ..program.groups import GroupOutcome
    from .dataflow import DataflowRun
    from .repeated_call import RepeatedCall

MOST_IDLE_FRAMES = 8  # kept for reuse; more concurrent steps make further frames
LARGEST_IDLE_BYTES = 64 << 20  # of memory plans in idle frames; one frame is kept, however large it is


class LinkReport(NamedTuple):
    """The decisions of a link, for explanations.

    `declined`: node to the (pack, reason) pairs of preferred kernels that declined it.
    `groups`: the fates of the groups that compilers claimed.
    `fusion_refusals`: the kernels of several nodes that the link did not use, with the reasons.
    """

    declined: Mapping[str, Sequence[tuple[str, str]]]
    groups: Sequence[GroupOutcome] = ()
    fusion_refusals: Sequence[FusionRefusal] = ()


class Executable:
    """A function linked for given argument metadata. Several threads may run it at once.

    It has fewer than 30 attributes, since reads of more take Python 4 % of a short run.

    `report`: the decisions of its link.
    `callees`: the functions that are linked for its calls.
    `may_give_dead`: True when a call of it, or of a callee, may give a dead value although its arguments are alive.
    `checks_arguments`: True when kernels may call it with any arguments: each call compares them with their metadata.
    `layout`: the properties of its frames, which `make_frame` makes.
    `autotuner`: holds the schedule of the next run.
    """

    def __init__(
        self, function: ProgramFunction, metas: Sequence[TensorMetadata], calls: Sequence[BoundCall],
        presets: Mapping[int, Any], devices: Mapping[str, Device], host: Host,
        report: LinkReport, callees: Sequence[Executable] = (), *, checks_arguments: bool = False,
    ) -> None:
        self.function = function
        self.report = report
        self.metas = tuple(metas)
        self._host = host
        self.layout = layout = FrameLayout.of(function, metas, calls, presets)
        self.make_frame = FrameFactory(layout, host).make
        self.is_asynchronous = layout.order.is_asynchronous  # then each run needs a Step of its own
        self._callees = callees
        self.may_give_dead: bool = (any(bound.may_give_dead for bound in layout.calls)
                                    or any(callee.may_give_dead for callee in callees))
        self._reports = CallReports(function, layout, devices, host)
        queued = [device for device in devices.values() if not device.attributes.get("host_visible")]
        self._queues = QueueDevices(queued, host) if queued else None
        self._fresh_calls = FreshCalls(layout, host)
        self._arguments = slice(len(function.arg_names))  # made once: a new slice for each run costs 1 % of a short run
        self._checks_arguments = checks_arguments
        self._open = layout.memory.open
        self._late = sorted(layout.order.late)
        self._pends = any(call.pends for call in layout.calls)
        self._results = function.results
        producers = (layout.registers.producer[r] for r in function.results if r in layout.registers.producer)
        self._looks_at_results = self._pends or any(bound.may_give_dead for bound in producers)
        self._copied = tuple((i, self._copier(function.results[i])) for i in layout.copied_results)
        kept = layout.lifetimes.kept
        self._kept = tuple((i, copy) for i, copy in self._copied if layout.registers.root[function.results[i]] in kept)
        self._quantised = tuple(i for i, meta in enumerate(function.result_metas) if meta.dtype.kind == "q")
        self._pick = _picker(function.results)
        run_flat = _run_single_call if len(layout.lists.flat) == 1 else _run_flat
        self._flat = flat = Schedule(self.make_frame, run_flat, _run_flat_each)
        # approximate
        self.nbytes: int = sum(bound.kernel_bytes for bound in calls) + sum(callee.nbytes for callee in callees)
        self._frame_bytes = layout.memory.plan.nbytes
        self._most_idle = max(1, min(MOST_IDLE_FRAMES, LARGEST_IDLE_BYTES // max(self._frame_bytes, 1)))
        host.memory.may_drop(flat.frames)
        # Host kernels may hand over to a DataflowRun, and poisoning follows the order of the list.
        is_fixed = (bool(queued) or len(layout.lists.flat) < 2 or host.debug.poison or layout.order.has_host_kernels)
        by_device = None if is_fixed else _device_schedule(layout, host, flat)
        self.autotuner = Autotuner(flat, partial(_faster_parallel_schedule, layout, host, flat), by_device)
        if is_fixed:
            self.autotuner.schedule = flat

    @property
    def frame_bytes(self) -> int:
        """Bytes of the memory plans in idle frames, its callees' frames included."""
        idle_bytes = len(self.autotuner.schedule.frames) * self._frame_bytes
        return idle_bytes + sum(callee.frame_bytes for callee in self._callees)

    def with_callees(self) -> Iterator[Executable]:
        """Yield the function and all functions that are linked for it."""
        remaining = [self]
        while remaining:
            executable = remaining.pop()
            yield executable
            remaining += executable._callees

    def device_name(self, bound: BoundCall) -> str:
        """Return the short name of a call's device, or "host"."""
        return self._reports.device_name(bound)

    def algorithms(self) -> dict[str, str]:
        """Return by node the kernel's description of its algorithm, and the way in which a device that can replay
        kernels launches it."""
        launches = describe_launches(self.layout)
        descriptions = ((bound.call, "; ".join(filter(None, (bound.how, launches.get(number)))))
                        for number, bound in enumerate(self.layout.calls))
        return {node: description for call, description in descriptions if description
                for node in call.fused or (call.node,)}

    def run(self, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Run the calls and return the results: arrays of exactly the linked metadata, contiguous and aligned.

        Results of quantised types are plain integers.

        Raises the typed error of the first call that fails, with its node, op and device; the step is quiet by then.
        Raises Unavailable when a device was lost before.
        """
        schedule = self.autotuner.schedule
        frame = self._take_frame(schedule, feeds, step)
        for i, copy in frame.copies:
            copy[...] = feeds[i]
        remaining: Sequence[int] = self._late
        try:
            if step.is_plain:
                frame.context.run(schedule.run, frame, step)
            else:
                frame.context.run(schedule.run_each, self._reports.call_each, frame, step)
        except HandOver:
            remaining = self.layout.calls_after(frame.position())
        except BaseException as error:
            # The typed error is not kept in a local variable: its traceback would hold itself and the frame.
            if is_interrupt(error):
                self._keep_alive(frame)
                raise
            if isinstance(error, HealdError) and (error is step.error or not frame.cursor.is_stopped):
                self._abort(error, frame, step, schedule)
                raise
            raise self._abort(error, frame, step, schedule) from error
        values = frame.registers
        if self.is_asynchronous and (remaining or self._looks_at_results or step.has_loop):
            values = self._finish(frame, step, remaining)
        if self._queues is not None:
            self._queues.end_run(frame)
        results = self._pick(values)
        if self._copied:
            for i, copy_result in self._copied:
                results[i] = copy_result(results[i])
        if self._quantised:
            for i in self._quantised:
                results[i] = plain_integers(results[i])
        self._return_frame(frame, schedule)
        return results

    def _take_frame(self, schedule: Schedule, arguments: Sequence[Any], step: Step) -> Frame:
        """Return an idle frame, or a new one, with the arguments and the step in its registers.

        Raises Unavailable when a device was lost before.
        """
        if self._queues is not None:
            self._queues.check()
        try:
            frame = schedule.frames.pop()
        except IndexError:
            frame = schedule.make_frame()
        registers = frame.registers
        registers[self._arguments] = arguments
        registers[-1] = step
        return frame

    def _return_frame(self, frame: Frame, schedule: Schedule) -> None:
        """Drop the values of a run and make the frame idle."""
        registers = frame.registers
        for register in self._open:
            registers[register] = None
        if len(schedule.frames) < self._most_idle:
            schedule.frames.append(frame)

    def _abort(self, error: BaseException, frame: Frame, step: Step, schedule: Schedule) -> HealdError:
        """Return the typed error of the call that raised, or of the cancelled step, once all started work is quiet.

        The frame is given up when devices or abandoned kernels may still use it.
        """
        typed = step.end_error() if frame.cursor.is_stopped else self._reports.typed_error_at(error, frame)
        self._await_failed_run(frame)
        if self.is_asynchronous:
            step.cancel(typed)
            self._dataflow(frame.registers, (), step, stop=True)
            step.loop.run()
        elif self._queues is None:
            self._return_frame(frame, schedule)
        return typed

    def _finish(self, frame: Frame, step: Step, remaining: Sequence[int]) -> list[Any]:
        """Run the remaining calls in a DataflowRun and return the values of all registers.

        Raises the step's error. The frame is then given up, since abandoned kernels may still use it.
        """
        run_tail = None if frame.tail is None else partial(self._run_tail, frame, frame.tail, step)
        dataflow = self._dataflow(frame.registers, remaining, step, stop=True, run_tail=run_tail)
        step.loop.run()
        if step.error is not None:
            self._await_failed_run(frame)
            dataflow.values.clear()  # the values hold the error, whose traceback holds this frame
            frame.registers.clear()
            raise step.error
        for register in self._results:
            if dataflow.values[register] is DEAD:
                raise self._reports.dead_result(register)
        return dataflow.values

    def _run_tail(self, frame: Frame, tail: Frame, step: Step, values: list[Any]) -> bool:
        """Run the layout's tail attached over these values. Return False, and run nothing, when one of them is dead.

        An error becomes the step's error.
        """
        if step.error is not None or any(isinstance(values[r], AsyncValue) for r in self.layout.lists.tail_needs):
            return False
        registers = frame.registers
        for register in self.layout.lists.tail_needs:
            registers[register] = values[register]
            if register not in self._results:
                values[register] = None
        try:
            if step.is_plain:
                _run_flat(tail, step)
            else:
                _run_flat_each(self._reports.call_each, tail, step)
        except BaseException as error:  # a kernel may raise any exception
            if is_interrupt(error):
                raise
            if step.error is None:
                step.cancel(self._reports.typed_error_at(error, tail))
        for register in self._results:
            if register in self.layout.lists.tail_gives:
                values[register] = registers[register]
        return True

    def start(self, arguments: Sequence[Any], step: Step) -> list[AsyncValue]:
        """Start a run and return its results, which may come later and belong to the caller.

        `step.loop` runs the remaining calls. A failed call fails its dependents, and no other call. Raises Unavailable
        when a device was lost before.
        """
        results = KernelContext().run(self.invoke, [payload_of(a) for a in arguments], step)
        values = [value if isinstance(value, AsyncValue) else available(value) for value in results]
        for i, _ in self._copied:
            values[i] = self._own_copy(values[i])
        return values

    def invoke(self, arguments: Sequence[Any], step: Step) -> list[Any]:
        """Run for a kernel of the same step, in its context. Return payloads where they are available, else
        AsyncValues.

        Results may be the arguments or constants of the program: they are read-only. In a step that ends at errors
        the first error is raised.
        """
        if self._checks_arguments:
            arguments = self.layout.registers.check_arguments(self.function, arguments)
        frame = self._take_frame(self._flat, arguments, step)
        registers = frame.registers
        remaining: Sequence[int] = self._late
        for argument in arguments:
            if argument.__class__ is AsyncValue:
                registers[self._arguments] = payloads = [payload_of(a) for a in arguments]
                if any(payload.__class__ is AsyncValue for payload in payloads):
                    remaining = range(len(self.layout.calls))
                    break
        else:
            for i, copy in frame.copies:
                copy[...] = registers[i]
            try:
                if step.is_plain:
                    self._flat.run(frame, step)
                else:
                    self._flat.run_each(self._reports.call_each, frame, step)
            except HandOver:
                remaining = self.layout.calls_after(frame.position())
            except BaseException as error:  # a kernel may raise any exception, which becomes its results
                if is_interrupt(error):
                    raise
                if step.ends_at_error:
                    raise self._typed_error_of_failed_run(error, frame, step)  # noqa: B904 - the cause is set there
                remaining = () if step.error is not None else self._fail_call(error, frame)
            else:
                if not remaining and not self._pends and self._queues is None:
                    results = self._pick(registers)
                    for i, copy_result in self._kept:
                        results[i] = copy_result(results[i])
                    self._return_frame(frame, self._flat)
                    return results
        has_ended = step.error is not None  # then the position may mean nothing, and no result is known to exist
        dataflow = self._dataflow(registers, () if has_ended else remaining, step, stop=step.ends_at_error)
        self._keep_alive(frame)
        registers.clear()  # an error that is a result lives on, and its traceback may hold this frame
        if has_ended:
            return self._results_at_end(dataflow.values, step)
        return [payload_of(dataflow.value(register)) for register in self._results]

    def repeat(self, step: Step) -> RepeatedCall | None:
        """Return the function in the form for many calls by one kernel, or None where `invoke` must serve them.

        Its arguments and results are payloads. Its errors are raised.
        """
        from .repeated_call import RepeatedCall

        is_in_place = not (self.is_asynchronous or self._checks_arguments or self._late or self._pends
                           or self.may_give_dead or self._queues is not None)
        if not (is_in_place and step.is_plain and step.ends_at_error):
            return None
        frame = self._take_frame(self._flat, [None] * len(self.function.arg_names), step)
        return RepeatedCall(frame, step, self._arguments, self._results,
                            partial(self._return_frame, schedule=self._flat), self._typed_error_of_failed_run,
                            self._kept)

    def _results_at_end(self, values: list[Any], step: Step) -> list[Any]:
        """Return the results that exist at the end of a cancelled step, and its error for the others.

        Chains are among the others, and so are tensors: their arrays may be unwritten. The values are dropped.
        """
        opaque = self.layout.registers.opaque
        results = [values[r] if r in opaque else None for r in self._results]
        values[:] = [None] * len(values)
        exists = [value.is_available() if isinstance(value, AsyncValue) else value is not None for value in results]
        return [value if is_there else failed(step.end_error())
                for is_there, value in zip(exists, results, strict=True)]

    def _typed_error_of_failed_run(self, error: BaseException, frame: Frame, step: Step) -> HealdError:
        """Return the typed error of the call that raised. The frame is free unless devices may still use it."""
        typed = step.end_error() if frame.cursor.is_stopped else self._reports.typed_error_at(error, frame)
        if not self.is_asynchronous and self._queues is None:
            self._return_frame(frame, self._flat)
        if typed is not error:
            typed.__cause__ = error
        return typed

    def _fail_call(self, error: BaseException, frame: Frame) -> list[int]:
        """Make the error of the failed call its results. Return the indices of the remaining calls."""
        position = frame.position()
        failure = failed(self._reports.typed_error_at(error, frame))
        for register in self.layout.order.gives[self.layout.lists.flat[position]]:
            frame.registers[register] = failure
        return self.layout.calls_after(position)

    def _own_copy(self, value: AsyncValue) -> AsyncValue:
        """Return a copy of a result, as soon as the result is available."""
        if value.is_available():
            try:
                return value if value.is_error() or value.is_dead() else available(self._copy(value.get()))
            except Exception as error:  # noqa: BLE001 - memory may be short, and only the value can report it
                return failed(as_heald_error(error, "copying a result"))
        copy = AsyncValue()
        value.and_then(lambda: copy.forward_to(self._own_copy(value)))
        return copy

    def _copier(self, register: int) -> Callable[[Any], Any]:
        """Return a function that returns a copy of this register's array."""
        if not self.layout.registers.has_size(register):
            return self._copy
        meta = self.layout.registers.metas[register]
        make = self._host.memory.maker(meta.dims, meta.dtype.numpy, "the copy of a result")

        def copy_static(array: Any) -> Any:
            copy = make()
            copy[...] = array
            return copy

        return copy_static

    def _copy(self, array: Any) -> Any:
        copy = self._host.memory.maker(array.shape, array.dtype, "the copy of a result")()
        copy[...] = array
        return copy

    def _dataflow(
        self, registers: list[Any], calls: Sequence[int], step: Step, *, stop: bool,
        run_tail: Callable[[list[Any]], bool] | None = None,
    ) -> DataflowRun:
        from .dataflow import DataflowRun

        if self._queues is not None:
            self._queues.join_streams()  # its calls are on the stream of the kernels
        return DataflowRun(self.layout, self._fresh_calls, calls, list(registers[:-1]), step, stop=stop,
                        typed=self._reports.typed_error, record=self._reports.record, run_tail=run_tail)

    def _await_failed_run(self, frame: Frame) -> None:
        if self._queues is not None:
            frame.context.run(self._queues.await_failed_run)

    def _keep_alive(self, frame: Frame) -> None:
        if self._queues is not None:
            self._queues.keep_alive(frame)


def _picker(results: Sequence[int]) -> Callable[[list[Any]], list[Any]]:
    """Return a function that returns a new list of the results, picked from the list of all registers."""
    if len(results) == 1:
        (only,) = results
        return itemgetter(slice(only, only + 1))  # a third of the time of a comprehension
    return lambda registers: [registers[r] for r in results]


def _run_single_call(frame: Frame, step: Step) -> None:
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
        raise step.end_error()


def _run_flat_each(call_each: CallEach, frame: Frame, step: Step) -> None:
    frame.cursor = cursor = Cursor()
    cursor.calls = calls = iter(frame.unreplayed or frame.calls)
    if step.error is not None:
        raise step.error
    for index, call in enumerate(calls):
        call_each(index, call, frame, step)
    if cursor.is_stopped:
        raise step.end_error()


def _device_schedule(layout: FrameLayout, host: Host, flat: Schedule) -> Schedule | None:
    if len({id(layout.calls[number].device) for number in layout.lists.flat}) < 2:
        return None
    from .parallel_schedule import make_device_schedule

    return make_device_schedule(layout, host, flat)


def _faster_parallel_schedule(layout: FrameLayout, host: Host, flat: Schedule, costs: Sequence[int]) -> Schedule | None:
    from .parallel_schedule import make_parallel_schedule

    return make_parallel_schedule(layout, host, flat, costs)
