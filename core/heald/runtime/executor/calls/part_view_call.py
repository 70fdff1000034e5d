"""PartViewCall: a call of a kernel that runs nothing. Each result is a part of an argument, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...support.records import record
from ..host_array import part_view
from .view_call import ViewCall

if TYPE_CHECKING:
    from ...values.tensor import TensorMetadata
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame

Part = tuple[int, int, int, "TensorMetadata"]  # result, source, first element, metadata of the result


@record
class PartViewCall(ViewCall):
    """`starts`: for each result its first element in its argument, which is in host memory."""

    starts: tuple[int, ...]

    @property
    def shows_parts(self) -> bool:
        return True

    @property
    def same_size_pairs(self) -> tuple[tuple[int, int], ...]:
        return ()

    def attach(self, frame: UnfinishedFrame) -> FrameCall | None:
        registers, metas, call = frame.registers, frame.environment.metas, self.call
        parts = [(r, call.args[self.alias[i]], self.starts[i], metas[r]) for i, r in enumerate(call.results)]
        if not frame.has_fixed(call.results):
            return partial(run_part_views, registers, parts)
        run_part_views(registers, parts)
        return None

    def fresh(self, environment: CallEnvironment) -> FreshCall:
        parts = [(self.alias[i], self.starts[i], environment.metas[r]) for i, r in enumerate(self.call.results)]
        return lambda _, ins: [part_view(ins[source], start, meta) for source, start, meta in parts]


def run_part_views(registers: list[Any], parts: Sequence[Part]) -> None:
    for result, source, start, meta in parts:
        registers[result] = part_view(registers[source], start, meta)
