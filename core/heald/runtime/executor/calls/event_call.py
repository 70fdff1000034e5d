"""EventCall: an event of a device's stream, as a chain that is filled when the stream has reached it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...program.host_program import HOST
from ...support.records import record
from ...values.async_value import AsyncValue
from .transfer import Transfer

if TYPE_CHECKING:
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@record
class EventCall(Transfer):
    memory: int = field(default=HOST, init=False)

    @cached_property
    def pends(self) -> bool:
        return True

    @property
    def same_size_pairs(self) -> tuple[tuple[int, int], ...]:
        return ()

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        reach = frame.environment.host.waiter(self.device).reach
        return partial(store_event, frame.registers, self.call.results[0], reach)

    def make_fresh_call(self, environment: CallEnvironment) -> FreshCall:
        waiter = environment.host.waiter(self.device)
        return lambda _, __: [waiter.reach()]


def store_event(registers: list[Any], result: int, reach: Callable[[], AsyncValue]) -> None:
    registers[result] = reach()
