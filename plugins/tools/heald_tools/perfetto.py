"""A trace in Perfetto's protobuf format, for ui.perfetto.dev and its trace processor.

A file is one message Trace, a list of TracePackets. TrackDescriptors name the tracks: the process, its threads, a track
for each queue of a device, and lanes for asynchronous calls, which overlap. A call is two TrackEvents on its track, a
begin and an end. The slices of a track nest: packets are in the order of time, ends before begins, and outer calls
begin before inner ones.

A device that times its work has a clock of its own. Its packets are a sequence of their own, whose timestamps name that
clock. A ClockSnapshot states the moment at which both clocks are taken to agree. Perfetto knows no rates, so it draws
the times of a virtual clock from this moment on.

Names, categories and texts that many calls share are interned: a packet states a new text of its sequence once, and
events name its number. The numbers below are those of Perfetto's public definitions (`protos/perfetto/trace`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from heald.api import wire
from heald.errors import printable
from heald.runtime.executor import HOST_CLOCK
from heald.runtime.program import COPY

if TYPE_CHECKING:
    from heald.runtime.executor import Event

PACKET = 1  # of Trace
CLOCK_SNAPSHOT, TIMESTAMP, SEQUENCE_ID, TRACK_EVENT, TIMESTAMP_CLOCK = 6, 8, 10, 11, 58  # TracePacket
CLOCKS, CLOCK_ID, CLOCK_TIMESTAMP = 1, 1, 2  # ClockSnapshot, and its Clock
TRACE_CLOCK, DEVICE_CLOCK = 6, 64  # CLOCK_ID: that of packets without one, and the first that a sequence may define
INTERNED_DATA, SEQUENCE_FLAGS, TRACK_DESCRIPTOR = 12, 13, 60
STATE_CLEARED, NEEDS_STATE = 1, 2  # sequence_flags
UUID, TRACK_NAME, PROCESS, THREAD, PARENT_UUID = 1, 2, 3, 4, 5  # TrackDescriptor
PROCESS_PID, PROCESS_NAME = 1, 6
THREAD_PID, THREAD_TID, THREAD_NAME = 1, 2, 5
CATEGORY_IIDS, ANNOTATIONS, EVENT_TYPE, NAME_IID, TRACK_UUID, FLOW_IDS = 3, 4, 9, 10, 11, 47  # TrackEvent
SLICE_BEGIN, SLICE_END = 1, 2  # EVENT_TYPE
CATEGORIES, EVENT_NAMES, ANNOTATION_NAMES, ANNOTATION_TEXTS = 1, 2, 3, 29  # InternedData
INTERNED_ID, INTERNED_TEXT = 1, 2
ANNOTATION_NAME_IID, ANNOTATION_TEXT_IID = 1, 17  # DebugAnnotation
SEQUENCE = 1  # of the host's clock; those of devices' clocks follow
put_bytes, put_integer = wire.put_bytes, wire.put_integer
MOST_CHARACTERS = 400  # of a text; a file may state a name of any length

TrackKey = tuple[str, Any]  # "thread" and its number, "queue" and its device, "lane" and its index


class Slice(NamedTuple):
    """One call on one track.

    `flows`: Numbers of the arrows that pass through it.
    `clock`: The device whose clock gives the times, HOST_CLOCK for the host's.
    """

    start_ns: int
    end_ns: int
    track: TrackKey
    event: Event
    flows: tuple[int, ...] = ()
    clock: str = HOST_CLOCK


class PacketSequence:
    """The packets whose times are of one clock: their number, and the texts that they have stated.

    `origin_ns`: The moment of the host's clock at which a device's clock stood at 0; None for the host's clock.
    """

    def __init__(self, number: int, origin_ns: int | None = None) -> None:
        self._number, self._origin_ns = number, origin_ns
        self.texts = InternedTexts()

    def opening(self) -> bytes:
        """Return the first packet: the process, or the snapshot of a device's clock beside the host's."""
        if self._origin_ns is None:
            return self.packet(_process_descriptor(), flags=STATE_CLEARED)
        clocks = b"".join(put_bytes(CLOCKS, put_integer(CLOCK_ID, clock) + put_integer(CLOCK_TIMESTAMP, moment))
                          for clock, moment in ((TRACE_CLOCK, self._origin_ns), (DEVICE_CLOCK, 0)))
        return self.packet(put_bytes(CLOCK_SNAPSHOT, clocks), flags=STATE_CLEARED)

    def event(self, moment: int, content: bytes) -> bytes:
        """Return the packet of an event at a moment of the slices' times."""
        stamp = put_integer(TIMESTAMP, moment - (self._origin_ns or 0))
        if self._origin_ns is not None:
            stamp += put_integer(TIMESTAMP_CLOCK, DEVICE_CLOCK)
        return self.packet(stamp + self.texts.take_new() + put_bytes(TRACK_EVENT, content), NEEDS_STATE)

    def packet(self, content: bytes, flags: int = 0) -> bytes:
        flag_field = put_integer(SEQUENCE_FLAGS, flags) if flags else b""
        return put_bytes(PACKET, content + put_integer(SEQUENCE_ID, self._number) + flag_field)


def perfetto_bytes(trace: Any, reasons: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """Return a trace as Perfetto's message. `reasons`: by node, as `Placement.reasons` returns them."""
    slices = slices_of(trace)
    tracks = {key: number for number, key in enumerate(dict.fromkeys(part.track for part in slices), 2)}
    host = PacketSequence(SEQUENCE)
    sequences = {HOST_CLOCK: host}
    for part in slices:
        if part.clock not in sequences and part.event.timed is not None:
            sequences[part.clock] = PacketSequence(SEQUENCE + len(sequences), part.event.timed.origin_ns)
    packets = [*(sequence.opening() for sequence in sequences.values()),
               *(host.packet(_track_descriptor(key, uuid, trace.threads)) for key, uuid in tracks.items())]
    for moment, is_begin, part in ordered_edges(slices):
        content = put_integer(EVENT_TYPE, SLICE_BEGIN if is_begin else SLICE_END)
        content += put_integer(TRACK_UUID, tracks[part.track])
        if is_begin:
            content += _begin_fields(part, sequences[part.clock].texts, reasons)
        packets.append(sequences[part.clock].event(moment, content))
    return b"".join(packets)


def slices_of(trace: Any) -> list[Slice]:
    """Return the calls of a trace on their tracks.

    Work of a device with a queue has two slices: its enqueueing on the thread, and the work on the queue's track."""
    slices: list[Slice] = []
    lanes: list[int] = []  # the end of the last call in each lane
    flows = _flows(trace)
    asynchronous = {_key(event) for event in trace.events if event.is_asynchronous}
    for event, _ in sorted(trace.calls(), key=lambda row: row[0].start_ns):
        numbers = tuple(flows.get(_key(event), ()))
        if event.timed is not None and event.timed.span is not None:
            begin, end = event.span
            slices.append(Slice(begin, end, ("queue", event.device), event, numbers, event.clock))
            numbers = ()
        key = ("lane", _free_lane(lanes, event)) if _key(event) in asynchronous else ("thread", event.thread)
        slices.append(Slice(event.start_ns, event.end_ns, key, event, numbers))
    return slices


def ordered_edges(slices: Sequence[Slice]) -> Iterator[tuple[int, bool, Slice]]:
    """Yield begins and ends in the order of time. Slices of one track nest."""
    by_track: dict[TrackKey, list[Slice]] = {}
    for part in slices:
        by_track.setdefault(part.track, []).append(part)
    edges: list[tuple[int, bool, Slice]] = []
    for parts in by_track.values():
        edges += _nested_edges(sorted(parts, key=lambda part: (part.start_ns, -part.end_ns)))
    return iter(sorted(edges, key=lambda edge: edge[0]))  # stable: each track keeps its order


def _nested_edges(parts: Sequence[Slice]) -> Iterator[tuple[int, bool, Slice]]:
    """Yield the edges of one track. A call that would outlast the call around it ends with that call."""
    open_slices: list[tuple[int, Slice]] = []
    for part in parts:
        while open_slices and open_slices[-1][0] <= part.start_ns:
            end, closed = open_slices.pop()
            yield end, False, closed
        open_slices.append((min(part.end_ns, open_slices[-1][0]) if open_slices else part.end_ns, part))
        yield part.start_ns, True, part
    for end, closed in reversed(open_slices):
        yield end, False, closed


class InternedTexts:
    """Numbers of texts, by kind of text, and the definitions that no packet states yet."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}
        self._new = b""

    def number(self, kind: int, text: str) -> int:
        text = _shown_text(text)
        if (kind, text) not in self._numbers:
            number = self._numbers[kind, text] = len(self._numbers) + 1
            self._new += put_bytes(kind, put_integer(INTERNED_ID, number) + put_bytes(INTERNED_TEXT, text))
        return self._numbers[kind, text]

    def take_new(self) -> bytes:
        """Return the field with the definitions since the last call, empty without one."""
        new, self._new = self._new, b""
        return put_bytes(INTERNED_DATA, new) if new else b""


def _begin_fields(part: Slice, texts: InternedTexts, reasons: Mapping[str, str]) -> bytes:
    event = part.event
    content = put_integer(CATEGORY_IIDS, texts.number(CATEGORIES, event.device or "host"))
    content += put_integer(NAME_IID, texts.number(EVENT_NAMES, event.call.op or event.call.code))
    for number in part.flows:
        content += wire.put_varint(FLOW_IDS << 3 | wire.FIXED64) + struct.pack("<Q", number)
    outputs = ", ".join(str(meta) for meta in event.outputs if meta is not None)
    rows = {"node": event.call.node, "kernel": event.call.code, "device": event.device,
            "clock": "" if part.clock == HOST_CLOCK else part.clock, "fused": ", ".join(event.call.fused),
            "why": reasons.get(event.call.node, ""), "outputs": outputs}
    for name, text in rows.items():
        if text:
            content += put_bytes(ANNOTATIONS, put_integer(ANNOTATION_NAME_IID, texts.number(ANNOTATION_NAMES, name))
                                 + put_integer(ANNOTATION_TEXT_IID, texts.number(ANNOTATION_TEXTS, text)))
    return content


def _process_descriptor() -> bytes:
    process = put_integer(PROCESS_PID, os.getpid()) + put_bytes(PROCESS_NAME, "heald")
    return put_bytes(TRACK_DESCRIPTOR, put_integer(UUID, 1) + put_bytes(PROCESS, process))


def _track_descriptor(key: TrackKey, uuid: int, threads: Mapping[int, str]) -> bytes:
    kind, value = key
    content = put_integer(UUID, uuid) + put_integer(PARENT_UUID, 1)
    if kind == "thread":
        thread = (put_integer(THREAD_PID, os.getpid()) + put_integer(THREAD_TID, value)
                  + put_bytes(THREAD_NAME, _shown_text(threads.get(value, "thread"))))
        return put_bytes(TRACK_DESCRIPTOR, content + put_bytes(THREAD, thread))
    name = f"{value}, its queue and clock" if kind == "queue" else "asynchronous calls"
    return put_bytes(TRACK_DESCRIPTOR, content + put_bytes(TRACK_NAME, _shown_text(name)))


def _key(event: Event) -> tuple[int, int]:
    return id(event.call), event.start_ns


def _flows(trace: Any) -> dict[tuple[int, int], list[int]]:
    """Return by call the numbers of its arrows: from the maker of a value to a copy, and from a copy to its users."""
    flows: dict[tuple[int, int], list[int]] = {}
    number = 0
    for event, sources in trace.calls():
        for source in sources:
            if COPY in (event.call.code, source.call.code):
                number += 1
                flows.setdefault(_key(source), []).append(number)
                flows.setdefault(_key(event), []).append(number)
    return flows


def _free_lane(lanes: list[int], event: Event) -> int:
    """Return the first lane whose last call has ended, and note this one there."""
    lane = next((index for index, end in enumerate(lanes) if end <= event.start_ns), len(lanes))
    lanes[lane:lane + 1] = [event.end_ns]
    return lane


def _shown_text(text: str) -> str:
    text = printable(text)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
