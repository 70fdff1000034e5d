"""A plugin of the tests alone: devices with streams for copies. One is right, each other one forgets some waits."""

from __future__ import annotations

from heald.api import hookimpl
from heald_example_device.device import Example

HEALD_API = (1, 4)


class Streaming(Example):
    """No fault. Each stream rests until the host waits for it."""

    type = "STREAMING"

    def __init__(self, index, memory):
        super().__init__(index, memory)
        self.attributes["queues"] = {"copy_in": 1, "copy_out": 2}

    def wait(self, stream, event):
        queues = self.native.streams

        def reach():
            while not event.reached:
                queues[event.stream].popleft()()

        queues[stream].append(reach)


class ForgetsWaits(Streaming):
    type = "HEEDLESS"

    def wait(self, stream, event):
        pass


class ForgetsWaitsForKernels(Streaming):
    type = "HURRIED"

    def wait(self, stream, event):
        if event.stream:
            super().wait(stream, event)


class ForgetsWaitsForCopies(Streaming):
    type = "HASTY"

    def wait(self, stream, event):
        if not event.stream:
            super().wait(stream, event)

    def synchronize(self, event):
        kernels = self.record(0)
        super().synchronize(kernels)  # they run first, whatever the host waits for
        super().synchronize(event)


class WaitsTheOtherWay(Streaming):
    """The stream of the event waits, and the stream that asks goes on."""

    type = "CROSSED"

    def wait(self, stream, event):
        super().wait(event.stream, self.record(stream))


DEVICES = (Streaming, ForgetsWaits, ForgetsWaitsForKernels, ForgetsWaitsForCopies, WaitsTheOtherWay)


def scan_of(kind):
    return lambda config: iter([kind(0, 1 << 26)])


@hookimpl
def heald_devices(registry):
    for kind in DEVICES:
        registry.device(type=kind.type, scan=scan_of(kind), kernels="heald_example_device.kernels:register_kernels")
