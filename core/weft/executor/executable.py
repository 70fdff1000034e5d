"""The executor: runs a linked program, each step in a frame of its own.

A run fills registers and calls the frame's flat list in order; nothing is looked up or tested per call. The first
exception ends the step; which call raised it is read off the list's iterator, at no cost to the others. A step that is
cancelled ends through the same iterator (Cursor.stop); only a step with a deadline or a trace looks at each call.
Results are the user's: what was not made in this very run is copied at the door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ..contract.device import STREAM, Device
from ..errors import Cancelled, DeadlineExceeded, WeftError
from ..host.bound_call_cache import bytes_of_call
from ..program.host_program import Function
from ..support.kernel_errors import as_weft_error, is_interrupt
from ..values.async_value import AsyncValue, available, failed, unwrapped
from ..values.tensor import TensorMetadata
from .autotune import Autotuner
from .bound_call import BoundCall
from .dataflow import Dataflow
from .frame import Cursor, Frame, FrameLayout
from .frame_calls import FrameCall, HandOver
from .parallel_schedule import divided
from .schedule import CallEach, Schedule
from .step import Step

if TYPE_CHECKING:
    from ..host.host import Host

FREE_FRAMES = 8  # frames kept for reuse; more steps at once make frames of their own
FREE_BYTES = 64 << 20  # of memory plans in these frames; one frame is kept however large it is


class Executable:
    """A function linked for given argument metadata. Several threads may run it at once."""

    def __init__(
        self, function: Function, metas: Sequence[TensorMetadata], calls: Sequence[BoundCall],
        presets: Mapping[int, Any], devices: Mapping[str, Device], host: Host,
        declined: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        self.function = function
        self.metas = tuple(metas)
        self.declined = declined  # node -> (pack, reason) of better kernels that declined it
        self.layout = FrameLayout(function, metas, calls, presets, host)
        self._host = host
        self._device_names = {id(None): "host"} | {id(device): name for name, device in devices.items()}
        self._asynchronous = [d for d in devices.values() if not d.attributes.get("host_visible")]
        self.is_asynchronous = self.layout.is_asynchronous  # its calls need a Step of their own
        self._count = len(function.arg_names)
        self._open = self.layout.open
        self._late = sorted(self.layout.late)
        self._pends = any(call.pends for call in self.layout.calls)
        self._results = function.results
        self._copied = self.layout.copied_results
        self._pick = _picker(function.results)
        run_flat = _run_one if len(self.layout.attached) == 1 else _run_flat
        self._flat = flat = Schedule(self.layout.make_frame, run_flat, _run_flat_each)
        self.nbytes = sum(bytes_of_call(bound.bound) for bound in calls)  # about
        self._frame_bytes = self.layout.plan.nbytes
        self._most_free = max(1, min(FREE_FRAMES, FREE_BYTES // max(self._frame_bytes, 1)))
        host.memory.may_drop(flat.frames)
        self.autotuner = Autotuner(flat, partial(divided, self.layout, host, flat))
        if self._asynchronous or len(self.layout.attached) < 2 or self.layout.is_in_order:
            self.autotuner.schedule = flat

    @property
    def frame_bytes(self) -> int:
        """Bytes of the memory plans in the frames that are kept."""
        return len(self.autotuner.schedule.frames) * self._frame_bytes

    def ways(self) -> dict[str, str]:
        """By node, in which way its kernel does the work, where that tells."""
        told = ((bound.call, bound.how) for bound in self.layout.calls)
        return {node: how for call, how in told if how for node in call.fused or (call.node,)}

    def run(self, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Results for these arguments: arrays of exactly the linked metadata, contiguous and aligned.

        Raises the typed error of the first call that fails, with its node, op and device; the step is quiet then.
        Unavailable when a device was lost before.
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
            # The typed error is no local variable: it would hold itself, and the frame, through its traceback.
            if is_interrupt(error):
                self._keep(frame)
                raise
            if isinstance(error, WeftError) and (error is step.error or not frame.cursor.is_stopped):
                self._abort(error, frame, step, schedule)
                raise
            raise self._abort(error, frame, step, schedule) from error
        values = self._finish(frame, step, left) if self.is_asynchronous else registers
        if self._asynchronous:
            frame.context.run(self._synchronize, frame)
            self._host.device_memory.drain(frame.lent)
            self._host.device_memory.free_dropped()
        results = self._pick(values)
        if self._copied:
            for i in self._copied:
                results[i] = self._copy(results[i])
        for register in self._open:
            registers[register] = None
        if len(schedule.frames) < self._most_free:
            schedule.frames.append(frame)
        return results

    def _abort(self, error: BaseException, frame: Frame, step: Step, schedule: Schedule) -> WeftError:
        """The typed error of the call that raised, or of the end of the step, when what has started is quiet. The
        frame is given up where devices or kernels that were not waited for may still use it."""
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
        """The values of all registers when the calls that are left have run. Raises the step's error: then the frame
        is given up, for kernels that were not waited for may still use it."""
        rest = self._dataflow(frame.registers, left, step, stop=True)
        step.loop.run()
        if step.error is not None:
            frame.context.run(self._quiet)
            rest.values.clear()  # they hold the error, whose traceback leads here
            frame.registers.clear()
            raise step.error
        return rest.values

    def start(self, arguments: Sequence[Any], step: Step) -> list[AsyncValue]:
        """Results for these arguments, payloads or AsyncValues each; they may come later: `step.loop` runs what is
        left. A call that fails takes those that depend on it with it, and no others. Raises Unavailable when a device
        was lost before."""
        if self._asynchronous:
            self._host.check(self._asynchronous)
        try:
            frame = self._flat.frames.pop()
        except IndexError:
            frame = self._flat.make_frame()
        registers = frame.registers
        registers[: self._count] = [unwrapped(a) for a in arguments]
        registers[-1] = step
        left: Sequence[int] = self._late
        if any(isinstance(a, AsyncValue) for a in registers[: self._count]):
            left = range(len(self.layout.calls))
        else:
            for i, copy in frame.copies:
                copy[...] = registers[i]
            try:
                if step.is_plain:
                    frame.context.run(self._flat.run, frame, step)
                else:
                    frame.context.run(_run_flat_each, self._call_each, frame, step)
            except HandOver:
                left = self.layout.after(frame.position(), without=True)
            except BaseException as error:  # a kernel may raise anything; it becomes its results
                if is_interrupt(error):
                    raise
                left = () if step.error is not None else self._fail(error, frame)
            else:
                if not left and not self._pends:
                    return self._give_back(frame)
        has_ended = step.error is not None  # then the position may mean nothing: no result is known to be there
        rest = self._dataflow(registers, () if has_ended else left, step, stop=False)
        if self._asynchronous:
            self._keep(frame)
        registers.clear()  # an error may hold this frame through its traceback, and lives as long as it is a result
        if has_ended:
            return [failed(step.end()) for _ in self._results]
        results = [rest.value(register) for register in self._results]
        for i in self._copied:
            results[i] = self._own(results[i])
        return results

    def _give_back(self, frame: Frame) -> list[AsyncValue]:
        """The results in a frame, which is free then."""
        registers = frame.registers
        results = self._pick(registers)
        for i in self._copied:
            results[i] = self._copy(results[i])
        self._free(frame, self._flat)
        return [available(result) for result in results]

    def _free(self, frame: Frame, schedule: Schedule) -> None:
        """The frame is idle again, without the values of its run. (`run` has these lines itself: a call costs more.)"""
        for register in self._open:
            frame.registers[register] = None
        if len(schedule.frames) < self._most_free:
            schedule.frames.append(frame)

    def _fail(self, error: BaseException, frame: Frame) -> list[int]:
        """The call that raised has failed: the numbers of the calls that are left."""
        position = frame.position()
        failure = failed(self._typed_at(error, frame))
        for register in self.layout.calls[self.layout.attached[position]].call.gives:
            frame.registers[register] = failure
        return self.layout.after(position, without=True)

    def _own(self, value: AsyncValue) -> AsyncValue:
        """A copy of a result, once it is there."""
        if value.is_available():
            try:
                return value if value.is_error() or value.is_dead() else available(self._copy(value.get()))
            except Exception as error:  # noqa: BLE001 - there may be no memory, and nobody to tell but who has the value
                return failed(as_weft_error(error, "copying a result"))
        own = AsyncValue()
        value.and_then(lambda: own.forward_to(self._own(value)))
        return own

    def _call_each(self, place: int, call: FrameCall, frame: Frame, step: Step) -> None:
        """A call of the flat list of a step that has a deadline or a trace."""
        started = perf_counter_ns()  # before the look: what begins after the end of the step has no time
        if step.cancelled():
            raise step.error  # type: ignore[misc]
        call()
        if step.trace is None:
            return
        bound = self.layout.calls[self.layout.attached[place]]
        given = [frame.registers[r] for r in bound.given] if bound.pends else ()
        step.trace.record(bound.call, self._device_names[id(bound.device)], started, given)

    def _copy(self, array: Any) -> Any:
        copy = self._host.memory.maker(array.shape, array.dtype, "the copy of a result")()
        copy[...] = array
        return copy

    def _dataflow(self, registers: list[Any], calls: Sequence[int], step: Step, *, stop: bool) -> Dataflow:
        return Dataflow(self.layout, calls, list(registers[:-1]), step, stop=stop, typed=self._typed,
                           device_names=self._device_names)

    def _synchronize(self, frame: Frame) -> None:
        """Wait until the devices have done what was enqueued. Raises their errors, typed, with the device."""
        for device in self._asynchronous:
            try:
                device.synchronize(device.record(STREAM))
            except BaseException as error:
                self._keep(frame)
                if is_interrupt(error):
                    raise
                name = self._device_names[id(device)]
                typed = as_weft_error(error, f"device {name}").at(device=name)
                self._host.failed(device, typed)
                raise typed from error

    def _quiet(self) -> None:
        """A step has failed: what is enqueued reads feeds, which the user may change or drop now."""
        for device in self._asynchronous:
            with suppress(Exception):  # a device that fails as well comes second
                device.synchronize(device.record(STREAM))

    def _keep(self, frame: Frame) -> None:
        """What devices may still use of a frame that is given up lives until they have done with it."""
        registers = list(frame.registers)
        for device in self._asynchronous:
            with suppress(Exception):  # a device that is lost uses nothing
                self._host.waiter(device).keep(frame, registers)

    def _typed_at(self, error: BaseException, frame: Frame) -> WeftError:
        """The typed error for what the call at the frame's cursor raised."""
        if not self.layout.attached:
            return self._typed(error, None)
        return self._typed(error, self.layout.calls[self.layout.attached[frame.position()]])

    def _typed(self, error: BaseException, bound: BoundCall | None) -> WeftError:
        """The typed error for what a call raised: the one place where a kernel's exception becomes weft's."""
        if bound is None:
            return as_weft_error(error, "the run")
        if isinstance(error, Cancelled | DeadlineExceeded):
            return error
        call = bound.call
        typed = as_weft_error(error, f"kernel {call.code}")
        if bound.device is None:
            typed.at(node=call.node or None, op=call.code, location=call.location)
        else:
            typed.at(node=call.node, op=call.op, device=self._device_names[id(bound.device)], location=call.location)
            self._host.failed(bound.device, typed)
        self._host.report(typed)
        return typed


def _picker(results: Sequence[int]) -> Callable[[list[Any]], list[Any]]:
    """The results among all registers. (For one, a comprehension takes three times as long as this.)"""
    if len(results) == 1:
        (only,) = results
        return lambda registers: [registers[only]]
    return lambda registers: [registers[r] for r in results]


def _run_one(frame: Frame, step: Step) -> None:
    """A flat list of one call: the cursor is at it already."""
    if step.error is not None:
        raise step.error
    frame.calls[0]()


def _run_flat(frame: Frame, step: Step) -> None:
    frame.cursor = cursor = Cursor()
    cursor.calls = calls = iter(frame.calls)
    if step.error is not None:  # after the cursor is there: who ends a step sets its error, then stops its cursors
        raise step.error
    for call in calls:
        call()
    if cursor.is_stopped:
        raise step.end()


def _run_flat_each(call_each: CallEach, frame: Frame, step: Step) -> None:
    frame.cursor = cursor = Cursor()
    cursor.calls = calls = iter(frame.calls)
    if step.error is not None:
        raise step.error
    for place, call in enumerate(calls):
        call_each(place, call, frame, step)
    if cursor.is_stopped:
        raise step.end()
