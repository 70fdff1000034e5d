"""CopyIn: a copy from host memory into the memory of a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...contract.device_queues import DeviceQueues
from ...support.records import record
from .frame_calls import open_call
from .transfer import Transfer, run_on_stream

if TYPE_CHECKING:
    from ...contract.device import Stream
    from ..step import Step
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@record
class CopyIn(Transfer):
    @cached_property
    def device_stream(self) -> Stream:  # known when linked
        return DeviceQueues.of(self.device).copy_in

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        args, results = self.call.args, self.call.results
        copy = frame.on_stream(results[0], self.copy_function())
        return open_call(frame.registers, args, results, frame.makers(results), copy)

    def make_fresh_call(self, environment: CallEnvironment) -> FreshCall:
        waiter, copy, (result,) = environment.host.waiter(self.device), self.copy_function(), self.call.results

        def call(step: Step, ins: list[Any]) -> list[Any]:
            out = environment.maker(result, [step])()
            copy(ins[0], out)
            waiter.keep(ins[0])
            return [out]

        return call

    def copy_function(self) -> Callable[[Any, Any], None]:
        """Return a function that enqueues a copy from its first argument to its second."""
        return partial(run_on_stream, self.device.copy_in)
