"""FeedCopy: a copy in host memory of a feed that a kernel retains. After the run the user may change the feed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ...host.host_memory import HostMemory
from ...program.host_program import HOST
from .frame_calls import run_lazy
from .transfer import Transfer

if TYPE_CHECKING:
    from ..step import Step
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@dataclass(frozen=True, eq=False)
class FeedCopy(Transfer):
    memory: int = field(default=HOST, init=False)

    @property
    def plannable(self) -> bool:
        return False

    def attach(self, frame: UnfinishedFrame) -> FrameCall | None:
        copy = partial(run_feed_copy, frame.environment.host.memory)
        return partial(run_lazy, frame.registers, self.call.args, self.call.results, copy)

    def fresh(self, environment: CallEnvironment) -> FreshCall:
        return partial(run_feed_copy, environment.host.memory)


def run_feed_copy(memory: HostMemory, _: Step, arrays: list[Any]) -> list[Any]:
    """Return copies of the arrays, in memory that no plan has."""
    copies = [memory.maker(array.shape, array.dtype, "the copy of a feed")() for array in arrays]
    for copy, array in zip(copies, arrays, strict=True):
        copy[...] = array
    return copies
