"""RetainedFeedCopy: a copy in host memory of a feed that a kernel retains. The user may change the feed later."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from ...host.host_memory import HostMemory
from ...program.host_program import HOST
from ...support.kernel_errors import as_heald_error
from ...support.records import record
from ..host_array import check_payload
from .bound_call import BoundCall
from .frame_calls import run_lazy

if TYPE_CHECKING:
    from ....errors import HealdError
    from ...host.host import Host
    from ...values.tensor import TensorMetadata
    from ..step import Step
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@record
class RetainedFeedCopy(BoundCall):
    """`device`: the device of the kernel that retains the feed, None for a host kernel; no part of the copy."""

    memory: int = field(default=HOST, init=False)
    kernel: None = field(default=None, init=False)

    @property
    def same_size_pairs(self) -> tuple[tuple[int, int], ...]:
        return ((0, 0),)

    @property
    def plannable(self) -> bool:
        return False

    @property
    def sees_host(self) -> bool:
        return True

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        copy = partial(run_feed_copy, frame.environment.host.memory)
        return partial(run_lazy, frame.registers, self.call.args, self.call.results, copy)

    def make_fresh_call(self, environment: CallEnvironment) -> FreshCall:
        return partial(run_feed_copy, environment.host.memory)

    def typed_error(self, error: BaseException, _: Host, __: str) -> HealdError:
        call = self.call
        return as_heald_error(error, "the copy of a feed").at(node=call.node, op=call.op, location=call.location)

    def check_payload(self, value: Any, meta: TensorMetadata) -> Any:
        return check_payload(value, meta, self.call.code)


def run_feed_copy(memory: HostMemory, _: Step, arrays: list[Any]) -> list[Any]:
    """Return copies of the arrays, in memory that no plan has."""
    copies = [memory.maker(array.shape, array.dtype, "the copy of a feed")() for array in arrays]
    for copy, array in zip(copies, arrays, strict=True):
        copy[...] = array
    return copies
