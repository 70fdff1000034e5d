"""PartViewCall: a call of a kernel that runs nothing. Each result is a part of an argument, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...program.host_program import HOST
from ...support.records import record
from ..host_array import part_view
from .view_call import ViewCall

if TYPE_CHECKING:
    from ...contract.device import Device
    from ...values.tensor import TensorMetadata
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame

ShowPart = Callable[[Any, int, "TensorMetadata"], Any]
Part = tuple[int, int, int, "TensorMetadata"]  # result, source, first element, metadata of the result


@record
class PartViewCall(ViewCall):
    """`starts`: for each result its first element in its argument. Both are in one memory."""

    starts: tuple[int, ...]

    @property
    def shows_parts(self) -> bool:
        return True

    @property
    def how(self) -> str:
        return "shows a part of its input" if len(self.starts) == 1 else "shows parts of its input"

    @property
    def same_size_pairs(self) -> tuple[tuple[int, int], ...]:
        return ()

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        registers, metas, call = frame.registers, frame.environment.metas, self.call
        parts = [(r, call.args[self.alias[i]], self.starts[i], metas[r]) for i, r in enumerate(call.results)]
        show = self._show_part()
        if not frame.has_fixed(call.results):
            return partial(run_part_views, registers, parts, show)
        try:
            run_part_views(registers, parts, show)
        except Exception as error:  # typed here, for no run of the call is
            host = frame.environment.host
            raise host.fault(self.device, error).at(node=call.node, op=call.op, location=call.location) from error
        return None

    def make_fresh_call(self, environment: CallEnvironment) -> FreshCall:
        parts = [(self.alias[i], self.starts[i], environment.metas[r]) for i, r in enumerate(self.call.results)]
        show = self._show_part()
        return lambda _, ins: [show(ins[source], start, meta) for source, start, meta in parts]

    def _show_part(self) -> ShowPart:
        return part_view if self.memory == HOST else partial(device_part, self.device)


def run_part_views(registers: list[Any], parts: Sequence[Part], show: ShowPart) -> None:
    for result, source, start, meta in parts:
        registers[result] = show(registers[source], start, meta)


def device_part(device: Device, buffer: Any, start: int, meta: TensorMetadata) -> Any:
    """Return the device's buffer over a part of another, from this element on."""
    return device.part(buffer, start * meta.dtype.itemsize, meta.nbytes)
