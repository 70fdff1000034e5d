"""Device clocks: the time that calls take on devices with queues, whose kernels return before their work is done.

A device with `elapsed` gives the time between the events before and behind a call. Every other device is awaited behind
each call, so that the host's clock holds.
"""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter_ns

from ..contract.device import STREAM, Device, Event, Stream, own_method

Span = tuple[int, int]  # start and end, in nanoseconds of the host's monotonic clock


class DeviceClock:
    """The clock of one device during a trace. Its origin joins the device's times to the host's clock.

    Raises the device's errors.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        elapsed = own_method(device, "elapsed")
        if elapsed is not None:
            first = self._await_event()
            elapsed(first, first)  # the device keeps times from here on
        self._origin = self._await_event()
        self.origin_ns = perf_counter_ns()  # of the host's clock, when this clock stood at its origin
        has_times = elapsed is not None and elapsed(self._origin, self._origin) is not None
        self._elapsed = elapsed if has_times else None

    def begin(self, stream: Stream) -> Timed:
        """Begin to time a call that is enqueued next on this stream."""
        return Timed(self, None if self._elapsed is None else self._device.record(stream), stream)

    def end(self, stream: Stream) -> Event:
        """Return the event behind the call, or wait for the call where the device has no times."""
        return self._await_event(stream) if self._elapsed is None else self._device.record(stream)

    def span(self, start: Event, end: Event) -> Span | None:
        """Return when the device worked between two of its events, after waiting for the second; None without times."""
        if self._elapsed is None:
            return None
        self._device.synchronize(end)
        began, duration = self._elapsed(self._origin, start), self._elapsed(start, end)
        if began is None or duration is None:
            return None
        start_ns = self.origin_ns + round(began * 1e9)
        return start_ns, start_ns + round(duration * 1e9)

    def _await_event(self, stream: Stream = STREAM) -> Event:
        event = self._device.record(stream)
        self._device.synchronize(event)
        return event


class Timed:
    """One call on a device with a queue.

    `span`: The time of its work, once it is settled; None without times.
    `origin_ns`: The moment of the host's clock at which the device's clock is taken to stand at 0.
    """

    __slots__ = ("_clock", "_end", "_start", "_stream", "origin_ns", "span")

    def __init__(self, clock: DeviceClock, start: Event, stream: Stream) -> None:
        self._stream = stream
        self._clock = clock
        self.origin_ns = clock.origin_ns
        self._start = start
        self._end: Event = None
        self.span: Span | None = None

    def mark_end(self) -> None:
        """Record the event behind the call that was just enqueued: the end of its work."""
        self._end = self._clock.end(self._stream)

    def settle(self) -> None:
        """Wait for the work and set `span`. A call that failed, or whose device was lost, has none."""
        with suppress(Exception):
            self.span = self._clock.span(self._start, self._end)
        self._start = self._end = None  # a driver may hold few events
