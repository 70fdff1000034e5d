"""The bytes of results over time: of each memory, on one clock each.

A result is alive from the call that makes it to the end of its last consumer. Without one inside a loop or function it
is alive to the end of the loop or function. Weights, inputs, the buffers inside kernels, and results that show the
buffer of an argument are not counted.

The results in a device's memory are timed by the clock of the calls that make them. Host memory is timed by the host's
clock alone: a copy from a device counts from its enqueueing on. A consumer on another clock has no moment on this one.
A result in a device's memory with such a consumer lives to the end of its clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from heald.runtime.executor import HOST_CLOCK
from heald.runtime.program import COPY

from .node_table import NodeTable, shown_text

if TYPE_CHECKING:
    from heald.runtime.executor import Event

    from .run_clocks import RunClocks

MOST_SAMPLES = 2_000  # of the bytes over time
MOST_HOLDERS = 40  # of memory at the peak
HOST_MEMORY = "host memory"


class Interval(NamedTuple):
    """The life of the results of a call. `call`: its place in the trace."""

    start_ns: int
    end_ns: int
    nbytes: int
    call: int


def memory_rows(calls: Sequence[tuple[Event, Any]], memories: Sequence[str], clocks: RunClocks,
                places: Mapping[int, int], table: NodeTable) -> list[dict[str, Any]]:
    """Return the use of each memory as JSON's values.

    `memories`: by place of a call in the trace, the memory of its results. `places`: likewise, its row."""
    return [_use_row(memory, clock, intervals, calls, clocks, places, table)
            for (memory, clock), intervals in _intervals(calls, memories, clocks).items()
            if any(interval.nbytes for interval in intervals)]


def memories_of_results(calls: Sequence[tuple[Event, Any]]) -> list[str]:
    """Return for each call the memory that holds its results: a device, or HOST_MEMORY for all devices on host memory.
    """
    from heald import default_host

    host = default_host()
    of_device = {device: HOST_MEMORY if ":" not in device or host.is_host_visible(device) else device
                 for device in {event.device for event, _ in calls}}
    return [HOST_MEMORY if event.call.code == COPY and event.call.attrs.get("to") == "host" else of_device[event.device]
            for event, _ in calls]


def call_key(event: Event) -> tuple[int, int]:
    """Return the key by which a source of a call is found among the calls."""
    return id(event.call), event.start_ns


def result_bytes(event: Event) -> int:
    return sum(meta.nbytes for index, meta in enumerate(event.outputs[:len(event.call.results)])
               if meta is not None and index not in event.views)


def _intervals(calls: Sequence[tuple[Event, Any]], memories: Sequence[str], clocks: RunClocks,
               ) -> dict[tuple[str, str], list[Interval]]:
    """Return the life of each call's results, by memory and clock."""
    consumers: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event, sources in calls:
        for source in sources:
            consumers[call_key(source)].append(event)
    callers: dict[str, list[Event]] = defaultdict(list)  # by function
    for event, _ in calls:
        for function in event.call.functions:
            callers[function].append(event)
    intervals: dict[tuple[str, str], list[Interval]] = {}
    for index, ((event, _), memory) in enumerate(zip(calls, memories, strict=True)):
        clock = HOST_CLOCK if memory == HOST_MEMORY else event.clock
        start = clocks.span_on(event, clock)[0]
        readers = consumers.get(call_key(event)) or _callers_around(event, callers)
        end = clocks.last_end(readers, clock)
        intervals.setdefault((memory, clock), []).append(Interval(start, end, result_bytes(event), index))
    return intervals


def _callers_around(event: Event, callers: Mapping[str, Sequence[Event]]) -> list[Event]:
    """Return the innermost call of the loop or function that an event is inside. Its results are the caller's."""
    around = [caller for caller in callers.get(event.function, ())
              if caller.start_ns <= event.start_ns and event.end_ns <= caller.end_ns]
    return sorted(around, key=lambda caller: caller.end_ns)[:1]


def _use_row(memory: str, clock: str, intervals: Sequence[Interval], calls: Sequence[tuple[Event, Any]],
             clocks: RunClocks, places: Mapping[int, int], table: NodeTable) -> dict[str, Any]:
    samples, peak_ns = _samples(intervals)
    peak = max((alive for _, alive in samples), default=0)
    holders = sorted((i for i in intervals if i.start_ns <= peak_ns < i.end_ns and i.nbytes), key=lambda i: -i.nbytes)
    rows = [[_holder_name(calls[i.call][0]), i.nbytes, table.number_of_name(calls[i.call][0].call.node),
             places.get(i.call, -1)] for i in holders[:MOST_HOLDERS]]
    in_us = [(clocks.us(clock, moment), alive) for moment, alive in samples]
    return {"memory": shown_text(memory), "clock": clocks.number(clock), "samples": _sparse_samples(in_us),
            "peak": peak, "peak_us": clocks.us(clock, peak_ns), "holders": rows, "more": len(holders) - len(rows)}


def _samples(intervals: Sequence[Interval]) -> tuple[list[tuple[int, int]], int]:
    """Return the bytes from each moment of a change on, and the first moment of the peak."""
    changes: dict[int, int] = defaultdict(int)
    for interval in intervals:
        changes[interval.start_ns] += interval.nbytes
        changes[interval.end_ns] -= interval.nbytes
    samples, alive, peak, peak_ns = [], 0, 0, min(changes)
    for moment in sorted(changes):
        alive += changes[moment]
        samples.append((moment, alive))
        if alive > peak:
            peak, peak_ns = alive, moment
    return samples, peak_ns


def _holder_name(event: Event) -> str:
    name = shown_text(event.call.node)
    return f"copy for {name}" if event.call.code == COPY else name


def _sparse_samples(samples: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return the largest sample of each of equal parts."""
    step = -(-len(samples) // MOST_SAMPLES)
    return [max(samples[start:start + step], key=lambda sample: sample[1]) for start in range(0, len(samples), step)]
