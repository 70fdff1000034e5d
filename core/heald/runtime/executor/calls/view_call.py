"""ViewCall: a call of a kernel that runs nothing. Its results are arguments under another type or shape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...program.host_program import HOST
from ...support.records import record
from ...values.tensor import TensorMetadata
from ..host_array import view
from .op_call import OpCall

if TYPE_CHECKING:
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@record
class ViewCall(OpCall):
    is_view = True

    @property
    def plannable(self) -> bool:
        return False

    @property
    def obstacle_to_capture(self) -> str:
        return "its kernel is not attached to buffers"

    @property
    def same_size_pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple(self.alias.items())

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        registers, args, results = frame.registers, self.call.args, self.call.results
        views = [(r, args[self.alias[i]], frame.environment.metas[r]) for i, r in enumerate(results)]
        if not frame.has_fixed(results):
            metas = frame.environment.metas
            if len(views) == 1 and metas[views[0][1]] == metas[views[0][0]] and metas[views[0][0]].is_static:
                return move_call(registers, views[0][1], views[0][0])
            return partial(run_view if self.memory == HOST else run_alias, registers, views)
        for result, source, meta in views:
            registers[result] = view(registers[source], meta) if self.memory == HOST else registers[source]
        return None

    def make_fresh_call(self, environment: CallEnvironment) -> FreshCall:
        metas = [environment.metas[r] for r in self.call.results]
        sources = [self.alias[i] for i in range(len(metas))]
        if self.memory != HOST:
            return lambda _, ins: [ins[source] for source in sources]
        return lambda _, ins: [view(ins[source], meta) for source, meta in zip(sources, metas, strict=True)]


def move_call(registers: list[Any], source: int, result: int) -> FrameCall:
    """Return the call of a view of the same type and shape, which takes a quarter of the time of `run_view`."""

    def move() -> None:
        registers[result] = registers[source]

    return move


def run_view(registers: list[Any], views: Sequence[tuple[int, int, TensorMetadata]]) -> None:
    for result, source, meta in views:
        registers[result] = view(registers[source], meta)


def run_alias(registers: list[Any], views: Sequence[tuple[int, int, TensorMetadata]]) -> None:
    """Share buffers on a device, which have no shape: the result register holds the source's buffer."""
    for result, source, _ in views:
        registers[result] = registers[source]
