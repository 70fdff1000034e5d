"""The executor: runs a linked program, each step in a frame of its own.

A run fills registers and calls the frame's flat list in order; nothing is looked up or tested per call. The first
exception ends the step; which call raised it is read off the list's iterator, at no cost to the others.
Results are the user's: what was not made in this very run is copied at the door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from .allocators.aligned import array_maker
from .async_value import AsyncValue, available, failed
from .device import Device
from .errors import (
    Cancelled,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    OutOfRange,
    ResourceExhausted,
    Unimplemented,
    Unknown,
    WeftError,
)
from .frame import STREAM, Attached, BoundCall, Frame, FrameLayout
from .host_program import Function
from .piecewise import divided
from .propagation import MISSING, Propagation
from .step import Step
from .tensor import TensorMetadata
from .tuning import Tuning
from .way import CallTraced, Way

if TYPE_CHECKING:
    from .host_context import HostContext

FREE_FRAMES = 8  # frames kept for reuse; more steps at once make frames of their own

# What an exception of a kernel means, by TensorFlow's rule for Python functions in a graph.
CODES: tuple[tuple[type[Exception], type[WeftError]], ...] = (
    (MemoryError, ResourceExhausted), (NotImplementedError, Unimplemented), (TimeoutError, DeadlineExceeded),
    (StopIteration, OutOfRange), (ValueError, InvalidArgument), (TypeError, InvalidArgument),
    (ArithmeticError, InvalidArgument),
)


class Executable:
    """A function linked for given argument metadata. Several threads may run it at once."""

    def __init__(
        self, function: Function, metas: Sequence[TensorMetadata], steps: Sequence[BoundCall],
        presets: Mapping[int, Any], devices: Mapping[str, Device], host: HostContext,
        declined: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        self.function = function
        self.metas = tuple(metas)
        self.declined = declined  # node -> (pack, reason) of better kernels that declined it
        self.layout = FrameLayout(function, metas, steps, presets, host)
        self._host = host
        self._device_names = {id(device): name for name, device in devices.items()}
        self._asynchronous = [d for d in devices.values() if not d.attributes.get("host_visible")]
        self.is_asynchronous = self.layout.is_asynchronous  # its calls need a Step of their own
        self._count = len(function.arg_names)
        self._open = self.layout.open
        self._results = function.results
        self._copied = self.layout.copied_results
        flat = Way(self.layout.make_frame, _run_flat, _run_flat_traced)
        self.tuning = Tuning(flat, partial(divided, self.layout, host, flat))
        if self._asynchronous or len(self.layout.attached) < 2:
            self.tuning.way = flat

    def run(self, feeds: Sequence[Any], step: Step) -> list[Any]:
        """Results for these arguments: arrays of exactly the linked metadata, contiguous and aligned.

        Raises the typed error of the first call that fails, with its node, op and device; the step is quiet then.
        """
        way = self.tuning.way
        try:
            frame = way.frames.pop()
        except IndexError:
            frame = way.make_frame()
        registers = frame.registers
        registers[: self._count] = feeds
        for i, copy in frame.copies:
            copy[...] = feeds[i]
        registers[-1] = step
        try:
            if step.trace is None:
                frame.context.run(way.run, frame, step)
            else:
                frame.context.run(way.run_traced, self._call_traced, frame, step)
            if self._asynchronous:
                self._synchronize()
        except Exception as error:
            # The typed error is no local variable: it would hold itself, and the frame, through its traceback.
            if isinstance(error, WeftError):
                self._abort(error, frame, step)
                raise
            raise self._abort(error, frame, step) from error
        values = self._finish(frame, step) if self.is_asynchronous else registers
        results = [values[r] for r in self._results]
        for i in self._copied:
            results[i] = self._copy(results[i])
        for register in self._open:
            registers[register] = None
        if len(way.frames) < FREE_FRAMES:
            way.frames.append(frame)
        return results

    def _abort(self, error: Exception, frame: Frame, step: Step) -> WeftError:
        """The typed error of the call that raised, when what has started is quiet."""
        typed = self._typed_at(error, frame)
        if self.is_asynchronous:
            step.cancel(typed)
            frame.context.run(self._propagation(frame.registers, (), step, stop=True).run)
        return typed

    def _finish(self, frame: Frame, step: Step) -> list[Any]:
        """The values of all registers when the calls that wait for asynchronous ones have run. Raises the step's
        error: then the frame is given up, for kernels that were not waited for may still use it."""
        rest = self._propagation(frame.registers, sorted(self.layout.late), step, stop=True)
        frame.context.run(rest.run)
        if step.error is not None:
            rest.values.clear()  # they hold the error, whose traceback leads here
            frame.registers.clear()
            raise step.error
        return rest.values

    def values(self, feeds: Sequence[Any], step: Step) -> list[AsyncValue]:
        """Results for these arguments, each a payload or an error, when the step is quiet: a call that fails takes
        those that depend on it with it, and no others."""
        frame = self.layout.make_frame()
        registers = frame.registers
        registers[: self._count] = feeds
        for i, copy in frame.copies:
            copy[...] = feeds[i]
        registers[-1] = step
        left: list[int] = sorted(self.layout.late)
        try:
            frame.context.run(_run_flat, frame, step)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything; it becomes its results
            position = frame.position()
            flat = self.layout.attached
            if step.error is None:
                left = [*flat[position + 1 :], *left]
                failure = failed(self._typed_at(error, frame))
                for register in self.layout.calls[flat[position]].call.results:
                    registers[register] = failure
            else:
                left = [*flat[position:], *left]
        rest = self._propagation(registers, left, step, stop=False)
        frame.context.run(rest.run)
        missing = failed(step.error or Internal("a result was never computed"))
        results = [missing if v is MISSING else v for v in (rest.values[r] for r in self._results)]
        return [v if isinstance(v, AsyncValue) else available(self._copy(v)) for v in results]

    def _call_traced(self, place: int, call: Attached, frame: Frame, step: Step) -> None:
        """A call of the flat list, and its time."""
        assert step.trace is not None
        bound = self.layout.calls[self.layout.attached[place]]
        started = perf_counter_ns()
        call()
        name = self._device_names[id(bound.device)]
        step.trace.record(bound.call, name, started)
        for value in (frame.registers[r] for r in bound.call.results if bound.lends):
            if isinstance(value, AsyncValue):
                step.trace.follow(bound.call, name, value, started)

    def _copy(self, array: Any) -> Any:
        copy = array_maker(self._host.allocator, array.shape, array.dtype)()
        copy[...] = array
        return copy

    def _propagation(self, registers: list[Any], calls: Sequence[int], step: Step, *, stop: bool) -> Propagation:
        return Propagation(self.layout, calls, list(registers[:-1]), step, stop=stop, typed=self._typed,
                           device_names=self._device_names)

    def _synchronize(self) -> None:
        for device in self._asynchronous:
            device.synchronize(device.record(STREAM))

    def _typed_at(self, error: Exception, frame: Frame) -> WeftError:
        """The typed error for what the call at the frame's cursor raised."""
        if not self.layout.attached:
            return self._typed(error, None)
        return self._typed(error, self.layout.calls[self.layout.attached[frame.position()]])

    def _typed(self, error: Exception, call: BoundCall | None) -> WeftError:
        """The typed error for what a call raised: the one place where a kernel's exception becomes weft's."""
        place: dict[str, str] = {}
        if call is not None:
            place = {"node": call.call.node, "op": call.call.op, "device": self._device_names[id(call.device)]}
        if isinstance(error, WeftError):
            return error if isinstance(error, Cancelled | DeadlineExceeded) else error.at(**place)  # type: ignore[arg-type]
        kind = next((mine for theirs, mine in CODES if isinstance(error, theirs)), Unknown)
        code = "" if call is None else f" {call.call.code}"
        typed = kind(f"kernel{code} failed with {type(error).__name__}: {error}", **place)  # type: ignore[arg-type]
        typed.__cause__ = error
        return typed


def _run_flat(frame: Frame, step: Step) -> None:
    for start, block in frame.blocks:
        frame.cursor = start, len(block), (calls := iter(block))
        if step.error is not None or (step.deadline is not None and step.cancelled()):
            raise step.error  # type: ignore[misc]
        for call in calls:
            call()


def _run_flat_traced(call_traced: CallTraced, frame: Frame, step: Step) -> None:
    for start, block in frame.blocks:
        frame.cursor = start, len(block), (calls := iter(block))
        if step.cancelled():
            raise step.error  # type: ignore[misc]
        for place, call in enumerate(calls, start):
            call_traced(place, call, frame, step)
