"""CallReports: the errors and the traces of an executable's calls.

An exception of a kernel becomes a typed error in one place, `BoundCall.typed_error`; `kernel_errors` has the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ...errors import Cancelled, DeadlineExceeded, HealdError, InvalidArgument
from ..contract.device import Device
from ..program.host_program import ProgramFunction
from ..support.kernel_errors import as_heald_error
from .calls.bound_call import BoundCall
from .calls.frame_calls import FrameCall
from .frame import Frame
from .frame_layout import FrameLayout
from .step import Step

if TYPE_CHECKING:
    from ..host.host import Host
    from .device_clock import Timed
    from .trace import Trace


class CallReports:
    def __init__(
        self, function: ProgramFunction, layout: FrameLayout, devices: Mapping[str, Device], host: Host
    ) -> None:
        self.layout = layout
        self._function = function
        self._host = host
        self._device_names = {id(None): "host"} | {id(device): name for name, device in devices.items()}

    def device_name(self, bound: BoundCall) -> str:
        """Return the short name of a call's device, or "host"."""
        return self._device_names[id(bound.device)]

    def call_each(self, index: int, call: FrameCall, frame: Frame, step: Step) -> None:
        """Run one call of the flat list in a step that has a deadline or a trace."""
        started = perf_counter_ns()  # before the check: a trace shows no start after the end of the step
        if step.cancelled():
            raise step.error  # type: ignore[misc]
        trace = step.trace
        if trace is None:
            call()
            return
        bound = self.layout.calls[frame.numbers[index]]
        timed = trace.begin(bound.device, self.layout.stream_of(bound))
        call()
        if timed is not None:
            timed.mark_end()
        self.record(trace, bound, started, [frame.registers[r] for r in bound.returned_registers], timed)

    def record(
        self, trace: Trace, bound: BoundCall, started: int, values: Sequence[Any], timed: Timed | None
    ) -> None:
        """Record a call that has just returned these values for the registers that it gives."""
        registers = self.layout.registers
        metas = [registers.metas[r] for r in bound.call.gives]
        roots = tuple(registers.root[r] for r in bound.call.args)
        views = tuple(index for index, r in enumerate(bound.call.gives) if registers.root[r] != r)
        trace.record(bound.call, self.device_name(bound), started, values, metas, self._function.name, timed, roots,
                     views)

    def typed_error_at(self, error: BaseException, frame: Frame) -> HealdError:
        """Return the typed error for an exception of the call at the frame's cursor."""
        if not frame.numbers:
            return as_heald_error(error, "the run")
        return self.typed_error(error, self.layout.calls[frame.numbers[frame.position()]])

    def typed_error(self, error: BaseException, bound: BoundCall) -> HealdError:
        """Return the typed error for an exception of a call. Exceptions of kernels become heald's only here."""
        if isinstance(error, Cancelled | DeadlineExceeded):
            return error
        typed = bound.typed_error(error, self._host, self.device_name(bound))
        self._host.report(typed)
        return typed

    def dead_result(self, register: int) -> InvalidArgument:
        """Return the error for a dead result, as TensorFlow's session raises it."""
        call = next(bound.call for bound in self.layout.calls if register in bound.call.results)
        tensor = f"{call.node}:{call.results.index(register)}"
        return InvalidArgument(f"the fetched tensor '{tensor}' is dead: control flow did not take its branch",
                               node=call.node, hint="fetch what a Merge makes of it")
