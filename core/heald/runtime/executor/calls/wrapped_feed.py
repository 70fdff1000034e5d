"""WrappedFeed: a copy of a feed to a device that may instead read the feed in host memory.

A device with `wrap` reads feeds of waiting callers in the host's memory. Intermediate values are copied to it: their
arrays may be buffers of the memory plan.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ...contract.device import STREAM, Device, Stream
from ...host.device_memory import DeviceMemory, Owned
from ...support.records import record
from .copy_in import CopyIn

if TYPE_CHECKING:
    from .frame_calls import FrameCall
    from .unfinished_frame import UnfinishedFrame


@record
class WrappedFeed(CopyIn):
    adopts_feed = True

    @property
    def plannable(self) -> bool:
        return False

    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        memory, (source,), (result,) = frame.environment.host.device_memory, self.call.args, self.call.results
        return partial(run_wrapped_feed, frame.registers, source, result, memory, self.device, frame.lent,
                       frame.streams.get(result, STREAM))


def run_wrapped_feed(
    registers: list[Any], source: int, result: int, memory: DeviceMemory, device: Device, lent: list[Owned],
    stream: Stream,
) -> None:
    """Enter a feed into a device that may read it in host memory. `lent` receives the device's buffer, to be freed."""
    registers[result] = buffer = memory.enter(device, registers[source], stream=stream)
    lent.append((device.free, buffer))
