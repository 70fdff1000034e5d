"""The record of a run: the calls of its trace, the time of each node, and the bytes that were alive.

A result is alive from the call that makes it to the end of its last consumer. Weights, inputs, and the buffers inside
kernels are not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .node_table import NodeTable, TextPool, shown_text
from .roofline import Roofline, roofline_row

if TYPE_CHECKING:
    from heald.runtime.executor import Event

MOST_CALLS = 20_000  # on a page; the longest ones
MOST_SAMPLES = 2_000  # of the bytes over time
MOST_HOLDERS = 40  # of memory at the peak


class Interval(NamedTuple):
    """The life of the results of a call. `call`: its place in the trace."""

    start_ns: int
    end_ns: int
    nbytes: int
    call: int


def run_record(trace: Any, table: NodeTable, pool: TextPool, roofline: Roofline | None = None) -> dict[str, Any]:
    """Return the record as JSON's values, with the work of calls where there is a roofline.

    Times are microseconds from the start of the first call."""
    calls = [*trace.calls()]
    if not calls:
        return {"calls": [], "threads": [], "memory": None, "roofline": None, "left_out": 0, "us": 0}
    begin = min(event.span[0] for event, _ in calls)
    indices = sorted(sorted(range(len(calls)), key=lambda index: -calls[index][0].ns)[:MOST_CALLS])
    places = {index: row for row, index in enumerate(indices)}
    place_of_event = {(id(calls[index][0].call), calls[index][0].start_ns): row for index, row in places.items()}
    tracks = TextPool()
    rows = [_call_row(calls[index][0], begin, table, pool, tracks.add(_track(trace, calls[index][0])),
                      [place_of_event[key] for source in calls[index][1]
                       if (key := (id(source.call), source.start_ns)) in place_of_event]) for index in indices]
    if roofline is not None:
        for row, index in zip(rows, indices, strict=True):
            row.append(_work(calls[index][0], roofline))
    return {"calls": rows, "threads": tracks.texts, "memory": _memory(calls, begin, places, table),
            "roofline": None if roofline is None else roofline_row(roofline, {event.device for event, _ in calls}),
            "left_out": len(calls) - len(indices),
            "us": round((max(event.span[1] for event, _ in calls) - begin) / 1e3, 1)}


def _track(trace: Any, event: Event) -> str:
    """Return the thread of a call, or the queue of its device."""
    if event.timed is not None and event.timed.span is not None:
        return f"{event.device}, its queue"
    return str(trace.threads.get(event.thread, "thread"))


def _call_row(event: Event, begin: int, table: NodeTable, pool: TextPool, track: int, sources: list[int]) -> list[Any]:
    """Return start, duration, track, name, kernel, device, outputs, nodes, sources, bytes of results."""
    nodes = dict.fromkeys(map(table.number_of_name, (event.call.node, *event.call.fused)))
    nodes.pop(-1, None)
    outputs = ", ".join(str(meta) for meta in event.outputs if meta is not None)
    return [round((event.span[0] - begin) / 1e3, 2), round(event.ns / 1e3, 2), track, shown_text(event.call.node),
            pool.add(event.call.code), pool.add(event.device), pool.add(outputs), [*nodes], sources,
            _result_bytes(event)]


def _work(event: Event, roofline: Roofline) -> tuple[int, int]:
    """Return the operations of a call, and the bytes that it moves. A copy has the name of the node that it serves, and
    none of its operations."""
    from heald.runtime.program import COPY
    from heald_tools.node_times import work_of_call

    if event.call.code == COPY:
        return 0, _result_bytes(event)
    return work_of_call(event.call, roofline.works)


def _memory(calls: Sequence[tuple[Event, Any]], begin: int, places: dict[int, int], table: NodeTable) -> dict[str, Any]:
    intervals = _intervals(calls)
    changes: dict[int, int] = defaultdict(int)
    for interval in intervals:
        changes[interval.start_ns] += interval.nbytes
        changes[interval.end_ns] -= interval.nbytes
    samples, alive, peak, peak_ns = [], 0, 0, begin
    for moment in sorted(changes):
        alive += changes[moment]
        samples.append((round((moment - begin) / 1e3, 2), alive))
        if alive > peak:
            peak, peak_ns = alive, moment
    holders = sorted((i for i in intervals if i.start_ns <= peak_ns < i.end_ns and i.nbytes), key=lambda i: -i.nbytes)
    rows = [[_holder_name(calls[i.call][0]), i.nbytes, table.number_of_name(calls[i.call][0].call.node),
             places.get(i.call, -1)] for i in holders[:MOST_HOLDERS]]
    return {"samples": _sparse_samples(samples), "peak": peak, "peak_us": round((peak_ns - begin) / 1e3, 2),
            "holders": rows,
            "more": len(holders) - len(rows)}


def _holder_name(event: Event) -> str:
    from heald.runtime.program import COPY

    name = shown_text(event.call.node)
    return f"copy for {name}" if event.call.code == COPY else name


def _intervals(calls: Sequence[tuple[Event, Any]]) -> list[Interval]:
    """Return the life of each call's results. A result without a consumer lives to the end of the run."""
    end = max(event.span[1] for event, _ in calls)
    last: dict[int, int] = {}  # by start of the call that made a value
    for event, sources in calls:
        for source in sources:
            key = source.start_ns
            last[key] = max(last.get(key, 0), event.span[1])
    return [Interval(event.span[0], last.get(event.start_ns, end), _result_bytes(event), index)
            for index, (event, _) in enumerate(calls)]


def _result_bytes(event: Event) -> int:
    return sum(meta.nbytes for meta in event.outputs[:len(event.call.results)] if meta is not None)


def _sparse_samples(samples: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return the largest sample of each of equal parts."""
    step = -(-len(samples) // MOST_SAMPLES)
    return [max(samples[start:start + step], key=lambda sample: sample[1]) for start in range(0, len(samples), step)]
