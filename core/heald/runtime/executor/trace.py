"""Trace: when each kernel of a step ran, on which thread and with which results, for Chrome's trace viewer.

A call on a device with a queue has two times: of its enqueueing on the thread, and of its work on the device.

Times are of several clocks. The host's clock times calls and enqueueing. A device with `elapsed` times its work by a
clock of its own, which may be virtual, so it passes at another rate. Its times are stated as if both clocks had stood
at the same moment when the trace met the device. Times of two clocks have no order and no sum.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import perf_counter_ns, time_ns
from types import MappingProxyType
from typing import Any

import numpy as np

from ..contract.device import STREAM, Device, Stream
from ..program.host_program import COPY, Call
from ..support.file_path import file_path
from ..support.records import NamedTuple
from ..support.whole_file import write_whole
from ..values.async_value import AsyncValue
from ..values.dtypes import of_numpy
from ..values.tensor import TensorMetadata
from .device_clock import DeviceClock, Span, Timed

HOST_CLOCK = "host"
TRACKS = 1 << 22  # thread numbers of devices in Chrome's format begin here, above those of Linux
CLOCKS = 1 << 22  # process numbers of devices' clocks begin here


class Event(NamedTuple):
    """One call of a kernel, in nanoseconds of a monotonic clock.

    `is_asynchronous`: the kernel returned an AsyncValue, and `end_ns` is the time at which it became available.
    `function`: the function of the program that has the call; the call's registers are numbered within it.
    `outputs`: the metadata of its results; None for a result that is no tensor or that had not come yet.
    `timed`: the times of the work on a device with a queue, for which `start_ns` and `end_ns` enclose the enqueueing.
    `roots`: the registers whose buffers its arguments are, those of the call itself when empty. An argument may be the
        result of an alias, which is no call of the run.
    `views`: the indices of results that show the buffer of an argument, and have no bytes of their own.
    """

    call: Call
    device: str
    thread: int
    start_ns: int
    end_ns: int
    is_asynchronous: bool = False
    function: str = ""
    outputs: tuple[TensorMetadata | None, ...] = ()
    timed: Timed | None = None
    roots: tuple[int, ...] = ()
    views: tuple[int, ...] = ()

    @property
    def arguments(self) -> tuple[int, ...]:
        """The registers that calls of the run filled, for the call's arguments."""
        return self.roots or self.call.args

    @property
    def span(self) -> Span:
        """Start and end of the work: on the device where that keeps times, else on the host."""
        on_device = None if self.timed is None else self.timed.span
        return on_device or (self.start_ns, self.end_ns)

    @property
    def clock(self) -> str:
        """The device whose clock gives `span`, or HOST_CLOCK."""
        return HOST_CLOCK if self.timed is None or self.timed.span is None else self.device

    @property
    def duration_ns(self) -> int:
        """The duration of the work."""
        start, end = self.span
        return end - start


def clock_spans(events: Iterable[Event]) -> dict[str, Span]:
    """Return by clock the start of the first event and the end of the last. The host's clock is the first.

    Enqueueing is an event of the host's clock."""
    spans: dict[str, Span] = {}
    for event in events:
        for clock, (start, end) in ((HOST_CLOCK, (event.start_ns, event.end_ns)), (event.clock, event.span)):
            first, last = spans.get(clock, (start, end))
            spans[clock] = min(first, start), max(last, end)
    return spans


def clock_texts(spans: Mapping[str, Span]) -> str:
    """Return the milliseconds of each clock as words."""
    words = [f"{(end - start) / 1e6:.3f} ms" + ("" if len(spans) == 1 else f" of {clock}'s clock" if clock != HOST_CLOCK
                                               else " of the host's clock") for clock, (start, end) in spans.items()]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class Trace:
    """Events of one or more steps, in the order of their ends. Several threads may record at once.

    `epoch_ns`: the nanoseconds since 1970 at which the events' clock stood at 0.
    `processes`: by thread of another process, its number and its name.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._unsettled: list[Timed] = []
        self._clocks: dict[int, DeviceClock] = {}  # by id of the device
        self.threads: dict[int, str] = {}
        self.processes: dict[int, tuple[int, str]] = {}
        self.epoch_ns = time_ns() - perf_counter_ns()

    @property
    def events(self) -> list[Event]:
        """The events, after a wait for the work of those on devices with queues."""
        self.settle()
        return self._events

    def add(self, events: Sequence[Event]) -> None:
        """Add events of another process, in the order of their ends."""
        self._events.extend(events)

    def begin(self, device: Device | None, stream: Stream = STREAM) -> Timed | None:
        """Begin to time a call on a device with a queue; None for another call. Raises the device's errors."""
        if device is None or device.attributes.get("host_visible"):
            return None
        if id(device) not in self._clocks:
            self._clocks[id(device)] = DeviceClock(device)
        return self._clocks[id(device)].begin(stream)

    def settle(self) -> None:
        """Wait for the timed work on devices. To be called before the devices are closed."""
        while self._unsettled:
            self._unsettled.pop().settle()

    def record(
        self, call: Call, device: str, start_ns: int, values: Sequence[Any] = (),
        metas: Sequence[TensorMetadata] = (), function: str = "", timed: Timed | None = None,
        roots: tuple[int, ...] = (), views: tuple[int, ...] = (),
    ) -> None:
        """Record a call that started at `start_ns` and has just returned on this thread.

        `values`: its results, or for a call that is declared asynchronous the AsyncValues that it returned. Each
        AsyncValue adds an event when it becomes available.
        `metas`: the linked metadata of its results.
        `timed`: the result of `begin` before the call, ended behind it.
        `roots`, `views`: as of Event.
        """
        thread = threading.current_thread()
        self.threads[thread.native_id or 0] = thread.name
        outputs = tuple(map(_metadata_of, values, metas))
        started = Event(call, device, thread.native_id or 0, start_ns, perf_counter_ns(), function=function,
                        outputs=outputs, timed=timed, roots=roots, views=views)
        if timed is not None:
            self._unsettled.append(timed)
        self._events.append(started)
        for value in values:
            if isinstance(value, AsyncValue):
                value.and_then(lambda: self._events.append(
                    started._replace(end_ns=perf_counter_ns(), is_asynchronous=True)))

    def calls(self) -> Iterator[tuple[Event, list[Event]]]:
        """Yield for each call its event and the events of the calls that gave its arguments, in order.

        The event of an asynchronous call ends when its result came. Arguments of the function and constants have no
        event. In a loop, a call takes the values that were given last.
        """
        ends = {(id(event.call), event.start_ns): event.end_ns for event in self.events if event.is_asynchronous}
        producers: dict[tuple[str, int], Event] = {}
        for event in self.events:
            if not event.is_asynchronous:
                registers = [(event.function, register) for register in event.arguments]
                whole_event = event._replace(end_ns=ends.get((id(event.call), event.start_ns), event.end_ns))
                yield whole_event, [producers[register] for register in registers if register in producers]
            producers.update(((event.function, register), event) for register in event.call.gives)

    def _repr_html_(self) -> str:
        """The longest calls as a table. A notebook calls this, and waits for the work on devices."""
        from ..support.notebook_table import notebook_table

        calls = [event for event, _ in self.calls()]
        spans = clock_spans(calls)
        order = [*spans]
        rows = [{"clock": event.clock, "start": f"{(event.span[0] - spans[event.clock][0]) / 1e6:.3f}",
                 "ms": f"{event.duration_ns / 1e6:.3f}", "node": event.call.node, "kernel": event.call.code,
                 "device": event.device, "results": ", ".join(str(meta) for meta in event.outputs if meta is not None)}
                for event in sorted(calls, key=lambda event: (order.index(event.clock), -event.duration_ns))]
        title = f"Trace of {len(rows)} calls in {clock_texts(spans) or '0.000 ms'}, the longest first" + (
            " on each clock" if len(spans) > 1 else "")
        columns = ("start", "ms", "node", "kernel", "device", "results")
        return notebook_table(title, rows, (*(["clock"] if len(spans) > 1 else []), *columns), "device")

    def to_chrome(self, reasons: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
        """Return the trace in Chrome's trace event format. Times are microseconds. `reasons`: by node, as
        `Placement.reasons` returns them.

        The work of a device with a queue is on a track of the device, in a process of the device's clock: viewers
        show processes apart. Arrows lead to each transfer between memories from the call that gave the value, and on
        to its users.
        """
        rows: list[dict[str, Any]] = []
        tracks: dict[str, int] = {}  # device to the number of its track and clock
        for number, event in enumerate(self.events):
            args = {"node": event.call.node, "kernel": event.call.code, "device": event.device}
            if event.call.fused:
                args["fused"] = ", ".join(event.call.fused)
            if event.call.node in reasons:
                args["why"] = reasons[event.call.node]
            outputs = [str(meta) for meta in event.outputs if meta is not None]
            if outputs:
                args["outputs"] = ", ".join(outputs)
            row = {"name": event.call.op, "cat": event.device, "pid": self._process(event.thread), "tid": event.thread,
                   "args": args}
            start, end = event.start_ns / 1000, event.end_ns / 1000
            if event.timed is not None and event.timed.span is not None and not event.is_asynchronous:
                track = TRACKS + tracks.setdefault(event.device, len(tracks))
                rows.append(row | {"ph": "X", "pid": CLOCKS + tracks[event.device], "tid": track,
                                   "ts": event.span[0] / 1000, "dur": event.duration_ns / 1000,
                                   "args": args | {"clock": event.clock}})
            if event.is_asynchronous:
                rows += [row | {"ph": "b", "id": number, "ts": start}, row | {"ph": "e", "id": number, "ts": end}]
            else:
                rows.append(row | {"ph": "X", "ts": start, "dur": end - start})
        names = [_named("thread_name", self._process(tid), tid, name) for tid, name in self.threads.items()]
        names += [_named("process_name", process, 0, name) for process, name in sorted({*self.processes.values()})]
        for device, number in tracks.items():
            names += [_named("process_name", CLOCKS + number, 0, f"{device}'s clock"),
                      _named("thread_name", CLOCKS + number, TRACKS + number, f"{device}, its queue")]
        return {"traceEvents": [*names, *rows, *self._arrows()], "displayTimeUnit": "ms"}

    def _process(self, thread: int) -> int:
        return self.processes[thread][0] if thread in self.processes else os.getpid()

    def dump(
        self, path: str | os.PathLike[str], reasons: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write the trace as JSON, with the reasons of `to_chrome`. The file appears once it is complete.

        Raises NotFound, PermissionDenied, ResourceExhausted or Unknown when the file cannot be written.
        """
        write_whole(file_path(path), [json.dumps(self.to_chrome(reasons)).encode()])

    def _arrows(self) -> Iterator[dict[str, Any]]:
        number = 0
        for event, sources in self.calls():
            for source in sources:
                if COPY in (event.call.code, source.call.code):
                    row = {"name": "transfer", "cat": "transfer", "id": number, "pid": self._process(event.thread),
                           "bp": "e"}
                    yield row | {"ph": "s", "tid": source.thread, "ts": source.start_ns / 1000}
                    yield row | {"ph": "f", "tid": event.thread, "ts": event.start_ns / 1000}
                    number += 1


def _named(kind: str, process: int, track: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": track, "args": {"name": name}}


def _metadata_of(value: Any, meta: TensorMetadata) -> TensorMetadata | None:
    if meta.is_static:
        return meta
    return TensorMetadata(of_numpy(value.dtype), value.shape) if isinstance(value, np.ndarray) else None
