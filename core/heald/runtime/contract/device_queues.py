"""DeviceQueues: the streams of a device for copies that go on beside its kernels."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import InvalidArgument
from ..support.records import NamedTuple
from .device import STREAM, Device, own_method

LARGEST_STREAM = 1 << 16


class DeviceQueues(NamedTuple):
    """The streams on which the runtime enqueues copies. Each is 0 by default, the stream of the kernels.

    `copy_in`, `copy_out`: The streams of copies from host memory and to it. Both may be the same.
    """

    copy_in: int = STREAM
    copy_out: int = STREAM

    @classmethod
    def of(cls, device: Device) -> DeviceQueues:
        """Read the attribute `queues` of a device. Raises InvalidArgument for an unknown or wrong stream, and for a
        device without `wait`."""
        streams = device.attributes.get("queues")
        if not streams and (streams is None or isinstance(streams, Mapping)):
            return ONE_QUEUE
        if not isinstance(streams, Mapping):
            raise InvalidArgument(f"the attribute 'queues' is a {type(streams).__name__}, not a dict", hint=_HINT)
        for work, stream in streams.items():
            if work not in cls._fields:
                raise InvalidArgument(f"the attribute 'queues' has the unknown work {work!r}", hint=_HINT)
            if type(stream) is not int or not STREAM <= stream <= LARGEST_STREAM:
                raise InvalidArgument(f"the queue of '{work}' is {stream!r}, not the number of a stream", hint=_HINT)
        if device.attributes.get("host_visible"):
            raise InvalidArgument("the attribute 'queues' is given for a device on host memory, which copies nothing")
        if own_method(device, "wait") is None:
            raise InvalidArgument("the attribute 'queues' is given, and the device has no method 'wait'",
                                  hint="define wait(stream, event), or leave out 'queues'")
        return cls(**streams)

    @property
    def beside(self) -> tuple[int, ...]:
        """The streams other than that of the kernels."""
        return tuple(dict.fromkeys(stream for stream in self if stream != STREAM))


ONE_QUEUE = DeviceQueues()
_HINT = f"write the number of a stream for {' and '.join(DeviceQueues._fields)}"
