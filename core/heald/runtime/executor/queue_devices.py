"""QueueDevices: the devices of an executable that work through queues, outside host memory.

Enqueued work counts as available for consumers on the same device. A value that leaves the device becomes available
when the device's `StreamWaiter` has seen the event behind the copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ..contract.device import STREAM, Device
from ..contract.device_queues import DeviceQueues
from ..support.kernel_errors import is_interrupt
from .frame import Frame
from .replay import capture

if TYPE_CHECKING:
    from ..host.host import Host


class QueueDevices:
    def __init__(self, devices: Sequence[Device], host: Host) -> None:
        self._devices = devices
        self._beside = [(device, stream) for device in devices for stream in DeviceQueues.of(device).beside]
        self._streams = [*self._beside, *((device, STREAM) for device in devices)]
        self._host = host

    def check(self) -> None:
        """Raises Unavailable when a device was lost before."""
        self._host.check(self._devices)

    def end_run(self, frame: Frame) -> None:
        """Wait for a run, free its buffers, and capture the segments of a frame that ran for the first time.

        Raises the typed errors of devices.
        """
        frame.context.run(self._synchronize, frame)
        self._host.device_memory.drain(frame.lent)
        self._host.device_memory.free_dropped()
        if frame.segments_to_capture:
            self._capture(frame)

    def _synchronize(self, frame: Frame) -> None:
        """Wait until the devices have done all enqueued work. Raises their errors, typed, with the device."""
        for device, stream in self._streams:
            try:
                device.synchronize(device.record(stream))
            except BaseException as error:
                self.keep_alive(frame)
                if is_interrupt(error):
                    raise
                raise self._host.fault(device, error)  # noqa: B904 - the cause is set there

    def _capture(self, frame: Frame) -> None:
        segments, frame.segments_to_capture = frame.segments_to_capture, ()
        for segment in segments:
            try:
                frame.context.run(capture, frame, segment)
            except Exception as error:
                raise self._host.fault(segment.device, error) from error

    def await_failed_run(self) -> None:
        """Wait for enqueued work of a failed step: it reads feeds, which the user may change or drop afterwards."""
        for device, stream in self._streams:
            with suppress(Exception):  # the first error is the one to report
                device.synchronize(device.record(stream))

    def join_streams(self) -> None:
        """Have later work on the stream of the kernels come behind the copies of other streams. Raises typed errors."""
        for device, stream in self._beside:
            try:
                device.wait(STREAM, device.record(stream))
            except Exception as error:
                raise self._host.fault(device, error) from error

    def keep_alive(self, frame: Frame) -> None:
        """Keep the registers of an abandoned frame alive until the devices have done with them."""
        registers = list(frame.registers)
        with suppress(Exception):
            self.join_streams()  # one event then stands behind the work of all streams
        for device in self._devices:
            with suppress(Exception):  # a lost device uses no memory any more
                self._host.waiter(device).keep(frame, registers)
