"""Trace: when each kernel of a step ran, and on which thread, for Chrome's trace viewer and Perfetto."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

from ..program.host_program import Call
from ..values.async_value import AsyncValue


class Event(NamedTuple):
    """One call of a kernel, in nanoseconds of a monotonic clock.

    `is_asynchronous`: the kernel returned an AsyncValue, and `end_ns` is the time at which it became available.
    """

    call: Call
    device: str
    thread: int
    start_ns: int
    end_ns: int
    is_asynchronous: bool = False


class Trace:
    """Events of one or more steps, in the order of their ends. Several threads may record at once."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._threads: dict[int, str] = {}

    def record(self, call: Call, device: str, start_ns: int, given: Iterable[Any] = ()) -> None:
        """Record a call that started at `start_ns` and has just returned on this thread.

        Each AsyncValue in `given`, its results, adds an event when it becomes available.
        """
        thread = threading.current_thread()
        self._threads[thread.native_id or 0] = thread.name
        started = Event(call, device, thread.native_id or 0, start_ns, perf_counter_ns())
        self.events.append(started)
        for value in given:
            if isinstance(value, AsyncValue):
                value.and_then(lambda: self.events.append(
                    started._replace(end_ns=perf_counter_ns(), is_asynchronous=True)))

    def to_chrome(self) -> dict[str, Any]:
        """Return the trace in Chrome's trace event format. Times are microseconds."""
        process = os.getpid()
        names = [{"name": "thread_name", "ph": "M", "pid": process, "tid": tid, "args": {"name": name}}
                 for tid, name in self._threads.items()]
        rows: list[dict[str, Any]] = []
        for number, event in enumerate(self.events):
            args = {"node": event.call.node, "kernel": event.call.code, "device": event.device}
            if event.call.fused:
                args["fused"] = ", ".join(event.call.fused)
            row = {"name": event.call.op, "cat": event.device, "pid": process, "tid": event.thread, "args": args}
            start, end = event.start_ns / 1000, event.end_ns / 1000
            if event.is_asynchronous:
                rows += [row | {"ph": "b", "id": number, "ts": start}, row | {"ph": "e", "id": number, "ts": end}]
            else:
                rows.append(row | {"ph": "X", "ts": start, "dur": end - start})
        return {"traceEvents": [*names, *rows], "displayTimeUnit": "ms"}

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON. The file appears once it is complete. Raises OSError."""
        file = Path(path)
        aside = file.with_name(f".weft-{os.urandom(6).hex()}.tmp")
        try:
            aside.write_text(json.dumps(self.to_chrome()), "utf-8")
            aside.replace(file)
        finally:
            aside.unlink(missing_ok=True)


class RunMetadata:
    """The records of a run. `trace` is set when the run's options ask for a trace."""

    def __init__(self) -> None:
        self.trace: Trace | None = None
