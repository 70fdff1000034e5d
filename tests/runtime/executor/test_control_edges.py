"""Control edges: a node runs when its control inputs are done, on one device or on several."""

from __future__ import annotations

import os

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, placeholder
from heald.graphs.graph.graph import Node
from heald.runtime.program.host_program import EVENT
from hypothesis import given, settings
from hypothesis import strategies as st
from plugins_for_tests import plugin

PLUGIN = plugin("marks")
CONFIG = {"plugins": {"load": [PLUGIN]}, "plugin": {"sim": {"devices": 2}}}
EXAMPLES = int(os.environ.get("HEALDTEST_GRAPHS", "400")) // 4
X = np.float32([1, 2])
DEVICES = ("CPU:0", "SIM:0", "SIM:1")


def mark_node(name, op, *inputs, device="CPU:0"):
    """A node that notes itself; `^c` among the inputs is a control edge."""
    return Node(name, op if op == "NoOp" else f"Test>{op}", inputs, attrs={} if op == "NoOp" else {"T": FLOAT},
                device=device)


def run(session, *arguments, **options):
    """The results of a run, and the nodes in the order in which they ended."""
    from plugin_of_marks import marks

    marks.clear()
    results = session.run(*arguments, **options)
    return results, list(marks)


@st.composite
def graphs(draw):
    """Nodes (op, data inputs, control inputs, device, whether it is slow), numbered; 0 is fed. Nodes of op Tell,
    TellLater and NoOp have no output."""
    nodes, values = [], [0]
    for number in range(1, draw(st.integers(2, 9))):
        op = draw(st.sampled_from(["Mark", "Mark", "Mark", "Tell", "Later", "TellLater", "NoOp", "Const"]))
        # Nodes that read x are not folded.
        fed = {"Mark": 1, "Later": 1, "Tell": 0, "TellLater": 0}.get(op)
        data = [] if fed is None else [draw(st.sampled_from(values if fed else [0])), *[0] * fed]
        controls = draw(st.sets(st.integers(1, number - 1), max_size=2)) if number > 1 else set()
        device = "CPU:0" if op in ("Later", "TellLater", "NoOp", "Const") else draw(st.sampled_from(DEVICES))
        nodes.append((op, data, sorted(controls), device, draw(st.booleans())))
        if op not in ("Tell", "TellLater", "NoOp"):
            values.append(number)
    return nodes


def name_of(number, nodes):
    return "x" if number == 0 else f"slow{number}" if nodes[number - 1][4] else f"n{number}"


@given(graphs())
@settings(max_examples=EXAMPLES, deadline=None)
def test_no_node_runs_before_what_its_edges_order_before_it(nodes):
    graph_nodes = [placeholder("x", (2,))]
    for number, (op, data, controls, device, _) in enumerate(nodes, 1):
        name, after = name_of(number, nodes), [f"^{name_of(c, nodes)}" for c in controls]
        graph_nodes.append(const(name, X, controls=[a[1:] for a in after]) if op == "Const" else
                           mark_node(name, op, *[name_of(d, nodes) for d in data], *after, device=device))
    session = heald.Session(graph(*graph_nodes), CONFIG)
    every = [name_of(n, nodes) for n in range(1, len(nodes) + 1)]
    for _ in range(2):
        _, order = run(session, [], {"x": X}, targets=every)
        position = {name: i for i, name in enumerate(order)}
        assert set(order) == {name_of(n, nodes) for n, (op, *_) in enumerate(nodes, 1) if op not in ("NoOp", "Const")}
        before: dict[int, set[str]] = {0: set()}  # the nodes that must have ended, by node
        for number, (_, data, controls, _, _) in enumerate(nodes, 1):
            earlier = {*data, *controls}
            before[number] = set().union(*(before[e] for e in earlier), {name_of(e, nodes) for e in earlier if e})
            own_position = position.get(name_of(number, nodes))
            assert own_position is None or all(position[b] < own_position for b in before[number] if b in position)
    assert [f for r in session.host.devices_in_use() if r.type == "SIM" for f in r.device.native.report] == []


@pytest.mark.parametrize("op", ["Mark", "Tell"])
@pytest.mark.parametrize(("first", "second"), [
    ("SIM:0", "SIM:1"), ("SIM:0", "CPU:0"), ("CPU:0", "SIM:0"), ("SIM:0", "SIM:0"), ("CPU:0", "CPU:0")])
def test_a_device_waits_for_what_another_does_and_no_value_crosses(op, first, second):
    inputs = ["x", "x"][: 2 if op == "Mark" else 1]
    session = heald.Session(graph(
        placeholder("x", (2,)), mark_node("slow", op, *inputs, device=first),
        mark_node("then", "Mark", "x", "x", "^slow", device=second)), CONFIG)
    for _ in range(20):
        metadata = heald.RunMetadata()
        result, order = run(session, "then", {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
        assert (result.tolist(), order) == ([2, 4], ["slow", "then"])
        codes = [event.call.code for event in metadata.trace.events if not event.is_asynchronous]
        crosses = first != second and first != "CPU:0"
        assert codes.count(EVENT) == crosses
        assert codes.count("heald.copy") == len({first, second} - {"CPU:0"}) + (second != "CPU:0")  # x in, result out


def test_a_control_input_runs_although_its_result_has_no_consumer():
    session = heald.Session(graph(placeholder("x", (2,)), mark_node("guard", "Mark", "x", "x"),
                                  mark_node("y", "Mark", "x", "x", "^guard")), CONFIG)
    assert run(session, "y", {"x": X})[1] == ["guard", "y"]


def test_a_value_that_an_alias_shows_keeps_its_order():
    alias = Node("alias", "Identity", ["x", "^slow"], attrs={"T": FLOAT})
    session = heald.Session(graph(placeholder("x", (2,)), mark_node("slow", "Later", "x", "x"), alias,
                                  mark_node("y", "Mark", "alias", "x", device="SIM:0")), CONFIG)
    assert run(session, "y", {"x": X})[1] == ["slow", "y"]


def test_an_error_of_what_comes_before_is_the_error_of_the_run():
    session = heald.Session(graph(placeholder("x", (2,)), mark_node("check", "Check", "x"),
                                  mark_node("y", "Mark", "x", "x", "^check")), CONFIG)
    assert run(session, "y", {"x": X})[1] == ["check", "y"]
    with pytest.raises(heald.errors.InvalidArgument, match="not a number") as caught:
        run(session, "y", {"x": np.float32([1, np.nan])})
    assert caught.value.node == "check"
