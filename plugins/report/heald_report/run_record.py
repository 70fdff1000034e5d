"""The record of a run: the calls of its trace on their clocks, memory over time, and the copies between memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heald.runtime.executor import HOST_CLOCK
from heald.runtime.program import COPY

from .copies import copy_table
from .memory_use import call_key, memories_of_results, memory_rows, result_bytes
from .node_table import NodeTable, TextPool, shown_text
from .roofline import Roofline, roofline_row
from .run_clocks import RunClocks

if TYPE_CHECKING:
    from heald.runtime.executor import Event

MOST_CALLS = 20_000  # on a page; the longest ones


class Tracks:
    """The rows of the timelines: the threads on the host's clock, and the queue of each device on its own clock."""

    def __init__(self, trace: Any, clocks: RunClocks) -> None:
        self._threads, self._clocks = trace.threads, clocks
        self._numbers: dict[tuple[str, int], int] = {}

    def thread(self, event: Event) -> int:
        return self._number(str(self._threads.get(event.thread, "thread")), HOST_CLOCK)

    def work(self, event: Event) -> int:
        """Return the track of the work: its device's queue, or its thread where the host times it."""
        if event.clock == HOST_CLOCK:
            return self.thread(event)
        return self._number(f"{event.device}, its queue", event.clock)

    def rows(self) -> list[tuple[str, int]]:
        """Return name and clock of each track."""
        return [*self._numbers]

    def _number(self, name: str, clock: str) -> int:
        return self._numbers.setdefault((shown_text(name), self._clocks.number(clock)), len(self._numbers))


def run_record(trace: Any, table: NodeTable, pool: TextPool, roofline: Roofline | None = None,
               feeds: Sequence[str] = ()) -> dict[str, Any]:
    """Return the record as JSON's values, with the work of calls where there is a roofline.

    Times are microseconds from the first call of their clock. `feeds`: the fed tensors, in order."""
    calls = [*trace.calls()]
    if not calls:
        return {"calls": [], "tracks": [], "clocks": [], "memory": [], "roofline": None, "left_out": 0,
                "copies": {"rows": [], "pairs": [], "more": 0}}
    clocks = RunClocks([event for event, _ in calls])
    tracks = Tracks(trace, clocks)
    indices = sorted(sorted(range(len(calls)), key=lambda index: -calls[index][0].duration_ns)[:MOST_CALLS])
    memories = memories_of_results(calls)
    places = {index: row for row, index in enumerate(indices)}
    place_of_event = {call_key(calls[index][0]): row for index, row in places.items()}
    rows = [[*_call_row(calls[index][0], clocks, tracks, table, pool),
             [place_of_event[key] for key in map(call_key, calls[index][1]) if key in place_of_event],
             result_bytes(calls[index][0]), None if roofline is None else _work(calls[index][0], roofline),
             _enqueueing(calls[index][0], clocks, tracks)] for index in indices]
    return {"calls": rows, "tracks": tracks.rows(), "clocks": clocks.rows(),
            "memory": memory_rows(calls, memories, clocks, places, table),
            "copies": copy_table(calls, memories, feeds, clocks, places, table, pool),
            "roofline": None if roofline is None else roofline_row(roofline, {event.device for event, _ in calls}),
            "left_out": len(calls) - len(indices)}


def _call_row(event: Event, clocks: RunClocks, tracks: Tracks, table: NodeTable, pool: TextPool) -> list[Any]:
    """Return start, duration, track, name, kernel, device, outputs, nodes."""
    nodes = dict.fromkeys(map(table.number_of_name, (event.call.node, *event.call.fused)))
    nodes.pop(-1, None)
    outputs = ", ".join(str(meta) for meta in event.outputs if meta is not None)
    return [clocks.us(event.clock, event.span[0]), round(event.duration_ns / 1e3, 2), tracks.work(event),
            shown_text(event.call.node), pool.add(event.call.code), pool.add(event.device), pool.add(outputs),
            [*nodes]]


def _enqueueing(event: Event, clocks: RunClocks, tracks: Tracks) -> list[Any] | None:
    """Return start, duration and track of the enqueueing of work that a device times; None for other work."""
    if event.clock == HOST_CLOCK:
        return None
    return [clocks.us(HOST_CLOCK, event.start_ns), round((event.end_ns - event.start_ns) / 1e3, 2),
            tracks.thread(event)]


def _work(event: Event, roofline: Roofline) -> tuple[int, int]:
    """Return the operations of a call, and the bytes that it moves. A copy has the name of the node that it serves, and
    none of its operations."""
    from heald_tools.node_times import work_of_call

    if event.call.code == COPY:
        return 0, result_bytes(event)
    return work_of_call(event.call, roofline.works)
