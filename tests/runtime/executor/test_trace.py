"""A trace has the time and thread of each kernel, and the end of the work that it started."""

from __future__ import annotations

import json
from html import unescape
from time import time_ns

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.graphs.protobuf import parse_message
from heald.runtime.executor import clock_spans, clock_texts
from heald_sim.device import Sim
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin("tests")]}}
X = np.float32([1, 2, 3])


def trace_of(*nodes, fetch="z"):
    session, metadata = heald.Session(graph(placeholder("x", (3,)), *nodes), CONFIG), heald.RunMetadata()
    session.run(fetch, {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    return metadata.trace


def test_every_kernel_of_a_run_is_in_its_trace_in_order():
    trace = trace_of(node("y", "Abs", "x"), node("z", "Exp", "y"))
    assert [(e.call.node, e.call.code, e.device) for e in trace.events] == [("y", "cpu.Abs", "CPU:0"),
                                                                            ("z", "cpu.Exp", "CPU:0")]
    times = [t for e in trace.events for t in (e.start_ns, e.end_ns)]
    assert times == sorted(times)


def test_a_call_that_waits_for_an_asynchronous_kernel_is_in_the_trace_after_it():
    trace = trace_of(node("y", "Test>MuchLater", "x", "x"), node("z", "Abs", "y"))
    launched, done, after = trace.events
    assert [e.call.node for e in trace.events] == ["y", "y", "z"]
    assert (launched.is_asynchronous, done.is_asynchronous) == (False, True)
    assert launched.start_ns <= done.end_ns <= after.start_ns


def test_a_trace_is_chromes_json(tmp_path):
    trace = trace_of(node("y", "Test>MuchLater", "x", "x"), node("z", "Abs", "y"))
    trace.dump(tmp_path / "trace.json")
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [r["ph"] for r in rows] == ["M", "X", "b", "e", "X"]
    assert rows[-1]["args"] == {"node": "z", "kernel": "cpu.Abs", "device": "CPU:0", "outputs": "float32[3]"}
    assert rows[-1]["dur"] > 0
    assert list(tmp_path.iterdir()) == [tmp_path / "trace.json"]


def test_there_is_no_trace_where_nobody_asked_for_one():
    session, metadata = heald.Session(graph(placeholder("x", (3,)), node("z", "Abs", "x")), CONFIG), heald.RunMetadata()
    session.run("z", {"x": X}, metadata=metadata)
    assert metadata.trace is None


def test_a_failing_run_has_the_trace_up_to_there():
    nodes = graph(placeholder("x", (3,)), node("y", "Abs", "x"), node("z", "Test>Fail", "y", "x"))
    session, metadata = heald.Session(nodes, CONFIG), heald.RunMetadata()
    with pytest.raises(heald.errors.PluginError):
        session.run("z", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    assert [e.call.node for e in metadata.trace.events] == ["y"]


def test_arrows_lead_to_a_transfer_and_on_to_its_users():
    nodes = [node("y", "Abs", "x", device="CPU:0"), node("z", "Exp", "y", device="SIM:0"),
             node("w", "Exp", "z", device="CPU:0")]
    trace = trace_of(*nodes, fetch="w")
    rows = trace.to_chrome()["traceEvents"]
    starts = {row["ts"]: row["args"]["kernel"] for row in rows if row["ph"] == "X"}
    ends = {phase: {row["id"]: starts[row["ts"]] for row in rows if row["ph"] == phase} for phase in "sf"}
    assert [(ends["s"][i], ends["f"][i]) for i in ends["s"]] == [
        ("cpu.Abs", "heald.copy"), ("heald.copy", "sim.Exp"), ("sim.Exp", "heald.copy"), ("heald.copy", "cpu.Exp")]


def test_run_metadata_is_tensorflows_message():
    session, metadata = heald.Session(graph(placeholder("x", (3,)), node("y", "Abs", "x"), node("z", "Exp", "y")),
                                      CONFIG), heald.RunMetadata()
    before = time_ns()
    session.run("z", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    message = parse_message("RunMetadata", metadata.dumps())
    device, = message.step_stats.dev_stats
    assert device.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert [row.node_name for row in device.node_stats] == ["y", "z"]
    last = device.node_stats[1]
    assert before <= last.all_start_nanos <= last.all_start_nanos + last.all_end_rel_nanos <= time_ns()
    assert last.all_start_micros == last.all_start_nanos // 1000
    assert last.timeline_label == "z = Exp(y)"
    assert list(device.thread_names) == [last.thread_id]
    described = last.output[0].tensor_description
    assert (described.dtype, [dim.size for dim in described.shape.dim]) == (1, [3])
    assert described.allocation_description.requested_bytes == last.memory[0].total_bytes == 12


def test_an_asynchronous_call_ends_in_the_message_when_its_result_comes():
    session, metadata = heald.Session(graph(placeholder("x", (3,)), node("y", "Test>MuchLater", "x", "x")),
                                      CONFIG), heald.RunMetadata()
    session.run("y", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    row, = parse_message("RunMetadata", metadata.dumps()).step_stats.dev_stats[0].node_stats
    launched, done = metadata.trace.events
    assert row.all_end_rel_nanos == done.end_ns - launched.start_ns


def test_run_metadata_without_a_trace_is_an_empty_message(tmp_path):
    heald.RunMetadata().dump(tmp_path / "run.pb")
    assert (tmp_path / "run.pb").read_bytes() == b""


def on_sim(monkeypatch, elapsed):
    """The trace of two kernels on a SIM, one behind the other, with this method `elapsed`."""
    if elapsed is None:
        monkeypatch.delattr(Sim, "elapsed")
    elif elapsed != "its own":
        monkeypatch.setattr(Sim, "elapsed", elapsed)
    config = {"plugin": {"sim": {"launch_latency": 1.0, "enqueue": 0.0}}}
    nodes = graph(placeholder("x", (3,)), node("y", "Neg", "x", device="SIM:0"), node("z", "Exp", "y", device="SIM:0"))
    metadata = heald.RunMetadata()
    with heald.Session(nodes, config) as session:
        session.run("z", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    return {e.call.node: e for e in metadata.trace.events if e.call.op != "copy"}, metadata.trace


def test_work_on_a_device_has_the_times_of_the_devices_clock(monkeypatch):
    events, trace = on_sim(monkeypatch, "its own")
    assert all(event.duration_ns == pytest.approx(1e9, rel=1e-6) for event in events.values())
    assert events["z"].span[0] == pytest.approx(events["y"].span[1], abs=1e4)
    assert all(event.end_ns - event.start_ns < event.duration_ns for event in events.values())  # of enqueueing
    rows = trace.to_chrome()["traceEvents"]
    (track,) = [row["tid"] for row in rows if row["ph"] == "M" and row["args"]["name"] == "SIM:0, its queue"]
    seconds = {row["name"]: row["dur"] / 1e6 for row in rows if row.get("tid") == track and row["ph"] == "X"}
    assert (seconds["Neg"], seconds["Exp"]) == (pytest.approx(1), pytest.approx(1))


def test_an_alias_leads_to_the_call_that_made_its_buffer():
    nodes = [node("y", "Exp", "x", device="SIM:0"), node("i", "Identity", "y", device="SIM:0")]
    copy, sources = [*trace_of(*nodes, fetch="i").calls()][-1]
    assert (copy.call.code, [source.call.node for source in sources]) == ("heald.copy", ["y"])


def test_each_clock_has_its_own_start_end_and_sum(monkeypatch):
    events, trace = on_sim(monkeypatch, "its own")
    spans = clock_spans(trace.events)
    assert [*spans] == ["host", "SIM:0"]
    assert {event.clock for event in events.values()} == {"SIM:0"}
    start, end = spans["SIM:0"]
    assert end - start == pytest.approx(2e9, rel=0.1)  # virtual, and no part of the host's time
    assert spans["host"][1] - spans["host"][0] < 1e9
    page = trace._repr_html_()
    host_ms = (spans["host"][1] - spans["host"][0]) / 1e6
    assert f"{host_ms:.3f} ms of the host's clock and {(end - start) / 1e6:.3f} ms of SIM:0's clock" in unescape(page)
    assert "<th>clock</th>" in page


def test_a_device_clock_is_a_process_of_its_own_in_chromes_format(monkeypatch):
    _, trace = on_sim(monkeypatch, "its own")
    rows = [row for row in trace.to_chrome()["traceEvents"] if row["ph"] in "MX"]
    process, = [row["pid"] for row in rows if row["args"].get("name") == "SIM:0's clock"]
    assert {row["args"].get("clock") for row in rows if row["ph"] == "X" and row["pid"] == process} == {"SIM:0"}
    assert {row["args"].get("clock") for row in rows if row["ph"] == "X" and row["pid"] != process} == {None}


@pytest.mark.parametrize(("spans", "text"), [
    ({}, ""), ({"host": (0, 1_500_000)}, "1.500 ms"),
    ({"host": (5, 1_000_005), "A:0": (0, 2_000_000), "A:1": (0, 0)},
     "1.000 ms of the host's clock, 2.000 ms of A:0's clock and 0.000 ms of A:1's clock")])
def test_times_of_clocks_are_told_apart(spans, text):
    assert clock_texts(spans) == text


@pytest.mark.parametrize("elapsed", [None, lambda self, start, end: None])
def test_a_call_on_a_device_without_a_clock_is_awaited(monkeypatch, elapsed):
    awaited = []
    synchronize = Sim.synchronize
    monkeypatch.setattr(Sim, "synchronize", lambda self, event: awaited.append(event) or synchronize(self, event))
    events, trace = on_sim(monkeypatch, elapsed)
    assert [event.span for event in events.values()] == [(e.start_ns, e.end_ns) for e in events.values()]
    assert len(awaited) >= len(trace.events)


def test_a_clock_that_fails_leaves_the_times_of_enqueueing(monkeypatch):
    def elapsed(self, start, end):
        if start is end:
            return 0.0
        raise RuntimeError("the clock stopped")

    events, _ = on_sim(monkeypatch, elapsed)
    assert [event.span for event in events.values()] == [(e.start_ns, e.end_ns) for e in events.values()]
