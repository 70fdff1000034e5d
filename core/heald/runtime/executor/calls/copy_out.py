"""CopyOut: a copy from the memory of a device into host memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...contract.device import STREAM, Stream
from ...contract.device_queues import DeviceQueues
from ...program.host_program import HOST
from ...support.records import record
from ...values.async_value import AsyncValue
from .frame_calls import Maker, open_call
from .transfer import Transfer, run_on_stream

if TYPE_CHECKING:
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@record
class CopyOut(Transfer):
    """`is_awaited`: True when the copy is awaited by itself. Calls of the same step read its result, or no run waits.

    Another copy is awaited with the device, at the end of the run.
    """

    memory: int = field(default=HOST, init=False)
    is_awaited: bool

    @cached_property
    def pends(self) -> bool:
        return self.is_awaited

    @cached_property
    def device_stream(self) -> Stream:  # known when linked
        return STREAM if self.is_awaited else DeviceQueues.of(self.device).copy_out

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        registers, args, results = frame.registers, self.call.args, self.call.results
        if not self.is_awaited:
            copy = frame.on_stream(results[0], partial(run_on_stream, self.device.copy_out))
            return open_call(registers, args, results, frame.makers(results), copy)
        leave = frame.environment.host.waiter(self.device).leave
        return partial(run_leaving, registers, args[0], results[0], frame.environment.maker(results[0], registers),
                       leave)

    def make_fresh_call(self, environment: CallEnvironment) -> FreshCall:
        waiter, make = environment.host.waiter(self.device), environment.maker(self.call.results[0], [])
        return lambda _, ins: [waiter.leave(ins[0], make())]


def run_leaving(
    registers: list[Any], source: int, result: int, make: Maker, leave: Callable[[Any, Any], AsyncValue]
) -> None:
    """Copy a value out of a device; the register holds an AsyncValue for the copy."""
    registers[result] = leave(registers[source], make())
