"""A trace tells when each kernel ran, on which thread, and when what it started was done."""

from __future__ import annotations

import json

import numpy as np
import pytest
import weft
from builders.graphs import graph, node, placeholder
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin("tests")]}}
X = np.float32([1, 2, 3])


def traced(*nodes, fetch="z"):
    session, metadata = weft.Session(graph(placeholder("x", (3,)), *nodes), CONFIG), weft.RunMetadata()
    session.run(fetch, {"x": X}, options=weft.RunOptions(trace=True), metadata=metadata)
    return metadata.trace


def test_every_kernel_of_a_run_is_in_its_trace_in_order():
    trace = traced(node("y", "Abs", "x"), node("z", "Exp", "y"))
    assert [(e.call.node, e.call.code, e.device) for e in trace.events] == [("y", "cpu.Abs", "CPU:0"),
                                                                             ("z", "cpu.Exp", "CPU:0")]
    times = [t for e in trace.events for t in (e.start_ns, e.end_ns)]
    assert times == sorted(times)


def test_what_waits_for_an_asynchronous_kernel_is_in_the_trace_after_it():
    trace = traced(node("y", "Test>MuchLater", "x", "x"), node("z", "Abs", "y"))
    launched, done, after = trace.events
    assert [e.call.node for e in trace.events] == ["y", "y", "z"]
    assert (launched.is_asynchronous, done.is_asynchronous) == (False, True)
    assert launched.start_ns <= done.end_ns <= after.start_ns


def test_a_trace_is_chromes_json(tmp_path):
    trace = traced(node("y", "Test>MuchLater", "x", "x"), node("z", "Abs", "y"))
    trace.dump(tmp_path / "trace.json")
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [r["ph"] for r in rows] == ["M", "X", "b", "e", "X"]
    assert rows[-1]["args"] == {"node": "z", "kernel": "cpu.Abs", "device": "CPU:0"}
    assert rows[-1]["dur"] > 0
    assert list(tmp_path.iterdir()) == [tmp_path / "trace.json"]


def test_there_is_no_trace_where_nobody_asked_for_one():
    session, metadata = weft.Session(graph(placeholder("x", (3,)), node("z", "Abs", "x")), CONFIG), weft.RunMetadata()
    session.run("z", {"x": X}, metadata=metadata)
    assert metadata.trace is None


def test_a_failing_run_has_the_trace_up_to_there():
    nodes = graph(placeholder("x", (3,)), node("y", "Abs", "x"), node("z", "Test>Fail", "y", "x"))
    session, metadata = weft.Session(nodes, CONFIG), weft.RunMetadata()
    with pytest.raises(weft.errors.InvalidArgument):
        session.run("z", {"x": X}, options=weft.RunOptions(trace=True), metadata=metadata)
    assert [e.call.node for e in metadata.trace.events] == ["y"]
