"""Trace messages: the events of a worker's part of a step as bytes, and the trace of all workers.

A worker is a process of the merged trace, and each of its threads a thread of that process.
"""

# The theory of clocks
#
# A worker's events have the times of its monotonic clock. Its trace knows at which time of day that clock stood at 0,
# and so does the session's. The difference moves the events to the session's clock. Clocks of two machines differ, so
# the events are moved further, as little as needed, between the session's call and its result.

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from heald.api import TensorMetadata
from heald.errors import DataLoss
from heald.runtime.executor import Event, Trace
from heald.runtime.program import Call
from heald.runtime.values import dtypes

from .task_graphs import task_name

THREADS_OF_TASK = 1 << 24  # numbers of threads of one worker in the merged trace


class RemoteWork(NamedTuple):
    """The times of the work on a worker's device with a queue, as of `Timed`."""

    span: tuple[int, int]
    origin_ns: int


def pack_trace(trace: Trace) -> bytes:
    """Return the events of a step that has ended."""
    rows = [[_pack_call(event), event.device, event.thread, event.start_ns, event.end_ns, event.is_asynchronous,
             event.function, [None if meta is None else [meta.dtype.name, meta.shape] for meta in event.outputs],
             None if event.timed is None or event.timed.span is None else [event.timed.span, event.timed.origin_ns]]
            for event in trace.events]
    return json.dumps([trace.epoch_ns, trace.threads, rows]).encode()


def merge_traces(messages: Mapping[int, bytes], begin_ns: int, end_ns: int) -> Trace:
    """Return the trace of all workers. `begin_ns`, `end_ns`: the session's call and its result, by its clock.

    Raises DataLoss for a damaged message.
    """
    merged = Trace()
    events: list[Event] = []
    for task, message in messages.items():
        try:
            epoch_ns, threads, rows = json.loads(message)
            shift = _shift(epoch_ns - merged.epoch_ns, rows, begin_ns, end_ns)
            events += [_unpack_event(task, row, shift) for row in rows]
            for thread, name in threads.items():
                merged.threads[_thread(task, int(thread))] = name
                merged.processes[_thread(task, int(thread))] = task, task_name(task)
        except (ValueError, TypeError, LookupError) as error:
            raise DataLoss(f"the trace of {task_name(task)} is damaged: {error}") from None
    merged.add(sorted(events, key=lambda event: event.end_ns))
    return merged


def _shift(shift: int, rows: list[Any], begin_ns: int, end_ns: int) -> int:
    """Return the nanoseconds by which events move, so that they are between the call and its result."""
    if not rows:
        return shift
    starts: list[int] = [row[3] for row in rows]
    ends: list[int] = [row[4] for row in rows]
    return max(begin_ns - min(starts), min(end_ns - max(ends), shift))


def _thread(task: int, thread: int) -> int:
    return (task + 1) * THREADS_OF_TASK + thread % THREADS_OF_TASK


def _pack_call(event: Event) -> list[Any]:
    call = event.call
    return [call.code, event.arguments, call.results, call.node, call.chain, call.fused]


def _unpack_event(task: int, row: list[Any], shift: int) -> Event:
    packed_call, device, thread, start, end, is_asynchronous, function, outputs, work = row
    code, args, results, node, chain, fused = packed_call
    call = Call(code, tuple(args), tuple(results), {"_fused": tuple(fused)} if fused else {}, node=node, chain=chain)
    metas = tuple(None if meta is None else TensorMetadata(dtypes.named(meta[0]), meta[1] and tuple(meta[1]))
                  for meta in outputs)
    timed: Any = None if work is None else RemoteWork((work[0][0] + shift, work[0][1] + shift), work[1] + shift)
    device = "CPU:0" if device == "host" else device
    return Event(call, f"{task_name(task)}/device:{device}", _thread(task, thread), start + shift, end + shift,
                 is_asynchronous, f"{task}/{function}", metas, timed)
