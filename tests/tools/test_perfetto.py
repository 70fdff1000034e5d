"""heald trace --perfetto: tracks, nested slices, arrows and interned texts of Perfetto's protobuf format.

The messages are read by protobuf itself, by definitions that repeat the field numbers of Perfetto's public files.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from heald.runtime.executor.trace import Event
from heald.runtime.program.host_program import COPY, Call
from heald_tools.perfetto import MOST_CHARACTERS, perfetto_bytes

MESSAGES = {  # field: number, type, repeated; as in protos/perfetto/trace
    "Trace": {"packet": (1, "TracePacket", True)},
    "TracePacket": {"clock_snapshot": (6, "ClockSnapshot"), "timestamp": (8, "uint64"),
                    "timestamp_clock_id": (58, "uint32"), "trusted_packet_sequence_id": (10, "uint32"),
                    "track_event": (11, "TrackEvent"), "interned_data": (12, "InternedData"),
                    "sequence_flags": (13, "uint32"), "track_descriptor": (60, "TrackDescriptor")},
    "ClockSnapshot": {"clocks": (1, "Clock", True)},
    "Clock": {"clock_id": (1, "uint32"), "timestamp": (2, "uint64")},
    "TrackDescriptor": {"uuid": (1, "uint64"), "name": (2, "string"), "process": (3, "ProcessDescriptor"),
                        "thread": (4, "ThreadDescriptor"), "parent_uuid": (5, "uint64")},
    "ProcessDescriptor": {"pid": (1, "int32"), "process_name": (6, "string")},
    "ThreadDescriptor": {"pid": (1, "int32"), "tid": (2, "int32"), "thread_name": (5, "string")},
    "TrackEvent": {"category_iids": (3, "uint64", True), "debug_annotations": (4, "DebugAnnotation", True),
                   "type": (9, "int32"), "name_iid": (10, "uint64"), "track_uuid": (11, "uint64"),
                   "flow_ids": (47, "fixed64", True)},
    "DebugAnnotation": {"name_iid": (1, "uint64"), "string_value_iid": (17, "uint64")},
    "InternedData": {"event_categories": (1, "Named", True), "event_names": (2, "Named", True),
                     "debug_annotation_names": (3, "Named", True),
                     "debug_annotation_string_values": (29, "Named", True)},
    "Named": {"iid": (1, "uint64"), "name": (2, "string")},
}
BEGIN, END = 1, 2


def trace_class():
    file = descriptor_pb2.FileDescriptorProto(name="perfetto_test.proto", package="p")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, *repeated) in fields.items():
            row = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if kind in MESSAGES:
                row.type, row.type_name = row.TYPE_MESSAGE, f".p.{kind}"
            else:
                row.type = getattr(row, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Trace"))


def parsed(raw):
    trace = trace_class()()
    trace.ParseFromString(raw)
    unknown = type(trace).FromString(raw)
    unknown.DiscardUnknownFields()
    assert unknown == trace
    return trace


def slices(raw):
    """Return (track, name, begin, end, annotations, flows) of each slice, as a trace viewer reads them.

    Texts, states and clocks are those of a packet's sequence. Times are of the host's clock by the snapshots."""
    texts, origins, last = {}, {}, {}
    tracks, stacks, done = {}, {}, []
    for packet in parsed(raw).packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags == 1:
            texts[sequence] = {field: {} for field in MESSAGES["InternedData"]}
        if packet.HasField("clock_snapshot"):
            moments = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
            origins[sequence] = moments[6] - moments[64]
        names = texts[sequence]
        for field, table in names.items():
            table.update((entry.iid, entry.name) for entry in getattr(packet.interned_data, field))
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            tracks[track.uuid] = track.name or track.thread.thread_name or track.process.process_name
        if packet.HasField("track_event"):
            event = packet.track_event
            assert packet.timestamp >= last.get(sequence, 0)
            assert packet.timestamp_clock_id == (64 if sequence in origins else 0)
            last[sequence] = packet.timestamp
            moment = packet.timestamp + origins.get(sequence, 0)
            if event.type == BEGIN:
                notes = {names["debug_annotation_names"][note.name_iid]:
                         names["debug_annotation_string_values"][note.string_value_iid]
                         for note in event.debug_annotations}
                stacks.setdefault(event.track_uuid, []).append(
                    [tracks[event.track_uuid], names["event_names"][event.name_iid], moment, notes,
                     [*event.flow_ids]])
            else:
                track, name, begin, notes, flows = stacks[event.track_uuid].pop()
                done.append((track, name, begin, moment, notes, flows))
    assert not any(stacks.values())
    return sorted(done, key=lambda row: row[2])


def trace_of(*rows):
    """Return a trace of events with the events that gave their arguments."""
    events = [event for event, _ in rows]
    return SimpleNamespace(events=events, calls=lambda: iter(rows), threads={7: "main"})


def event(op, start, end, *, code="", node="", device="CPU:0", **fields):
    return Event(Call(code or f"cpu.{op}", (), (), node=node or op), device, 7, start, end, **fields)


def test_a_run_has_a_slice_for_each_call(command, digits, tmp_path):
    file, chrome = tmp_path / "run.pftrace", tmp_path / "run.json"
    stdout = command("trace", digits / "frozen.pb", "--input", f"{digits / 'test.npz'}:image", "--perfetto", str(file),
                     "-o", str(chrome)).out
    assert f"written: {chrome}, {file}" in stdout
    rows = [row for row in json.loads(chrome.read_text())["traceEvents"] if row["ph"] == "X"]
    found = slices(file.read_bytes())
    assert [row[1] for row in found] == [row["name"] for row in sorted(rows, key=lambda row: row["ts"])]
    assert {row[4]["device"] for row in found} == {"CPU:0"}
    assert all("why" in row[4] for row in found if row[4].get("node"))
    assert file.stat().st_size < chrome.stat().st_size


def test_calls_inside_a_call_are_nested_and_touching_calls_are_not():
    inner, outer, behind = event("Add", 20, 30), event("While", 10, 40), event("Neg", 40, 40)
    found = slices(perfetto_bytes(trace_of((inner, []), (outer, []), (behind, []))))
    assert [row[1:4] for row in found] == [("While", 10, 40), ("Add", 20, 30), ("Neg", 40, 40)]


def test_asynchronous_calls_that_overlap_have_lanes_of_their_own():
    rows = [event("A", 0, 50), event("B", 10, 60), event("C", 55, 70)]
    trace = trace_of(*((row, []) for row in rows))
    trace.events += [row._replace(is_asynchronous=True) for row in rows]
    packets = [packet.track_event.track_uuid for packet in parsed(perfetto_bytes(trace)).packet
               if packet.track_event.type == BEGIN]
    assert packets[0] == packets[2] != packets[1]
    assert [row[1:4] for row in slices(perfetto_bytes(trace))] == [("A", 0, 50), ("B", 10, 60), ("C", 55, 70)]


def timed(*span, origin_ns=0):
    return SimpleNamespace(span=span, origin_ns=origin_ns)


def test_work_of_a_queue_is_on_a_track_of_the_device_and_copies_have_arrows():
    made = event("Neg", 0, 5, device="SIM:0", timed=timed(8, 20, origin_ns=3))
    copied = event("copy", 30, 35, code=COPY, device="SIM:0")
    found = slices(perfetto_bytes(trace_of((made, []), (copied, [made]))))
    assert [(row[0], row[2]) for row in found] == [("main", 0), ("SIM:0, its queue and clock", 8), ("main", 30)]
    assert [row[5] for row in found] == [[], [1], [1]]
    assert [row[4].get("clock") for row in found] == [None, "SIM:0", None]


def test_each_device_clock_is_a_sequence_with_its_own_clock_and_snapshot():
    rows = [event(f"Neg{number}", number, number + 1, device=f"SIM:{number % 3}",
                  timed=timed(100 + 7 * number, 103 + 7 * number, origin_ns=50 + number % 3)) for number in range(6)]
    raw = perfetto_bytes(trace_of(*((row, []) for row in rows)))
    snapshots = {packet.trusted_packet_sequence_id: [(clock.clock_id, clock.timestamp)
                                                     for clock in packet.clock_snapshot.clocks]
                 for packet in parsed(raw).packet if packet.HasField("clock_snapshot")}
    assert snapshots == {2: [(6, 50), (64, 0)], 3: [(6, 51), (64, 0)], 4: [(6, 52), (64, 0)]}
    on_queues = [row[:4] for row in slices(raw) if "queue" in row[0]]
    assert on_queues == [(f"SIM:{number % 3}, its queue and clock", f"Neg{number}", 100 + 7 * number, 103 + 7 * number)
                         for number in range(6)]


@pytest.mark.parametrize("name", ["<script>x</script>", "\x00\x1b[31m", "\udc80", "\u202eevil", "a" * 5000, "é/日"])
def test_names_of_a_model_are_text_without_control_characters(name):
    (_, _, _, _, notes, _), = slices(perfetto_bytes(trace_of((event("Neg", 0, 1, node=name), [])), {name: name}))
    assert notes["node"].isprintable()
    assert notes["why"] == notes["node"]
    assert len(notes["node"]) <= MOST_CHARACTERS + 1


def test_a_trace_without_calls_is_a_file_with_a_process():
    packet, = parsed(perfetto_bytes(trace_of())).packet
    assert packet.track_descriptor.process.process_name == "heald"


def test_a_file_that_cannot_be_written_is_a_typed_error(command, digits):
    values = f"{digits / 'test.npz'}:image"
    done = command("trace", digits / "frozen.pb", "--input", values, "--perfetto", "no/x.pftrace")
    assert done.status == 1
    assert "no/x.pftrace" in done.err
