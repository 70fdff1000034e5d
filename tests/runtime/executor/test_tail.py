"""The tail: calls that wait for every asynchronous call run attached and in order, over buffers of the memory plan."""

from __future__ import annotations

import gc

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import Cancelled, DeadlineExceeded, InvalidArgument, PluginError
from heald.graphs.graph.graph import Node
from heald.runtime.executor.executable import Executable
from heald.runtime.executor.step import RunOptions
from heald.runtime.values import dtypes
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin("tests")]}}
X = np.array([1, 2, 3], np.float32)
CHAIN = [node("a", "Test>Add", "later", "x"), node("b", "Test>Add", "a", "x"), node("c", "Test>Add", "b", "x")]
LATER = [placeholder("x", (3,)), node("later", "Test>Later", "x", "x"), *CHAIN]


def executable(nodes, fetches, config=CONFIG):
    session = heald.Session(graph(*nodes), config)
    return session, session.prepare(fetches, ["x"]).executable()


def tail(linked: Executable) -> list[str]:
    return [linked.layout.calls[n].call.node for n in linked.layout.order.tail]


def test_the_tail_has_the_calls_that_depend_on_every_asynchronous_call():
    nodes = [*LATER, node("second", "Test>Later", "x", "x"), node("early", "Test>Add", "x", "x"),
             node("both", "Test>Add", "c", "second"), node("end", "Test>Add", "both", "early")]
    session, linked = executable(nodes, ["end"])
    assert tail(linked) == ["both", "end"]
    assert session.run("end", {"x": X}).tolist() == (X * 9).tolist()


def test_a_program_without_asynchronous_calls_has_no_tail():
    _, linked = executable([placeholder("x", (3,)), node("y", "Test>Add", "x", "x")], ["y"])
    assert tail(linked) == []
    assert linked.make_frame().tail is None


def test_intermediate_values_of_the_tail_have_buffers_of_the_plan_and_results_have_none():
    session, linked = executable(LATER, ["c"])
    assert tail(linked) == ["a", "b", "c"]
    assert linked.layout.memory.plan.nbytes
    first, second = session.run("c", {"x": X}), session.run("c", {"x": 2 * X})
    assert (first.tolist(), second.tolist()) == ((X * 5).tolist(), (X * 10).tolist())


def test_results_before_the_tail_within_it_and_at_its_end_are_all_returned():
    session, _ = executable(LATER, ["later", "a", "b", "c", "x"])
    for _ in range(3):
        results = session.run(["later", "a", "b", "c", "x"], {"x": X})
        assert [y.tolist() for y in results] == [(X * n).tolist() for n in (2, 3, 4, 5, 1)]


def test_an_error_in_the_tail_names_its_node_and_the_next_run_succeeds():
    nodes = [*LATER, node("bad", "Test>Positive", "c", "c"), node("end", "Test>Add", "bad", "c")]
    session, linked = executable(nodes, ["end"])
    assert "bad" in tail(linked)
    for _ in range(3):
        with pytest.raises(PluginError) as caught:
            session.run("end", {"x": -X})
        assert (caught.value.node, caught.value.op) == ("bad", "Test>Positive")
        assert session.run("end", {"x": X}).shape == (3,)


def test_a_cancelled_tail_begins_no_further_call():
    token = heald.CancelToken()
    nodes = [*LATER, node("poll", "Test>Poll", "c", "c"), node("end", "Test>Add", "poll", "c")]
    session, linked = executable(nodes, ["end"])
    assert "poll" in tail(linked)
    with pytest.raises(DeadlineExceeded, match=r"0\.05 s"):
        session.run("end", {"x": X}, options=RunOptions(timeout=0.05))
    token.cancel()
    with pytest.raises(Cancelled):
        session.run("end", {"x": X}, options=RunOptions(cancel=token))


def test_a_trace_has_each_call_of_the_tail_once():
    session, linked = executable(LATER, ["c"])
    metadata = heald.RunMetadata()
    session.run("c", {"x": X}, options=RunOptions(trace=True), metadata=metadata)
    names = [event.call.node for event in metadata.trace.events]
    assert {"a", "b", "c"} <= set(tail(linked))
    assert sorted(name for name in names if name in "abc") == ["a", "b", "c"]


def test_a_tail_with_poisoned_memory_reads_no_dead_buffer():
    session, linked = executable(LATER, ["c"], CONFIG | {"debug": {"poison": True}})
    assert tail(linked) == ["a", "b", "c"]
    for scale in (1, 2, 3):
        assert session.run("c", {"x": X * scale}).tolist() == (X * 5 * scale).tolist()


def test_a_dead_value_makes_the_tail_event_driven():
    """The tail stands behind one side of a Switch, which is dead in every second run."""
    nodes = [placeholder("x", (3,)), placeholder("p", (), dtypes.bool_), node("later", "Test>Later", "x", "x"),
             node("switch", "Switch", "later", "p"), node("a", "Test>Add", "switch:1", "x"),
             node("b", "Test>Add", "a", "x")]
    with heald.Session(graph(*nodes), CONFIG) as session:
        assert tail(session.prepare(["b"], ["x", "p"]).executable()) == ["a", "b"]
        for _ in range(2):
            assert session.run("b", {"x": X, "p": True}).tolist() == (X * 4).tolist()
            with pytest.raises(InvalidArgument, match="dead"):
                session.run("b", {"x": X, "p": False})


def test_a_constants_view_that_waits_for_an_early_asynchronous_call_serves_the_tail():
    nodes = [*LATER, const("k", [[1], [2], [3]]), const("flat", [3], np.int32),
             Node("view", "Reshape", ["k", "flat"], controls=["later"], attrs={"T": dtypes.float32,
                                                                               "Tshape": dtypes.int32}),
             node("second", "Test>Later", "x", "x"), node("both", "Test>Add", "second", "c"),
             node("end", "Test>Add", "both", "view")]
    session, linked = executable(nodes, ["end"])
    assert tail(linked) == ["both", "end"]
    for _ in range(2):
        assert session.run("end", {"x": X}).tolist() == (X * 8).tolist()


def test_no_frame_outlives_an_error_of_its_tail():
    session, linked = executable([*LATER, node("bad", "Test>Positive", "c", "c")], ["bad"])
    with pytest.raises(PluginError):
        session.run("bad", {"x": -X})
    gc.collect()
    assert all(frame.registers[-1] is None for frame in linked.autotuner.schedule.frames)
