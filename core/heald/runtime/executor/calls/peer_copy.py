"""PeerCopy: a copy between the memories of two devices, without the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....errors import Internal
from ...contract.device import STREAM, Device, Stream
from ...support.records import record
from .copy_in import CopyIn


@record
class PeerCopy(CopyIn):
    """`source`: the device whose memory has the argument."""

    source: Device
    joins_devices = True

    @property
    def device_stream(self) -> Stream:  # `copy_peer` has its own rule of order
        return STREAM

    def copy_function(self) -> Callable[[Any, Any], None]:
        device, source = self.device, self.source

        def copy(x: Any, out: Any) -> None:
            if not device.copy_peer(x, out, STREAM):
                raise Internal(f"device {device.uid} reaches {source.uid}, and its copy_peer refuses a buffer of it")

        return copy
