"""A node that lacks an input is an error of its own, wherever it stands: in a graph, a branch, a loop or a function."""

from __future__ import annotations

from collections.abc import Iterator

import heald
import numpy as np
import pytest
from builders.control_flow import branch, call, case, function, loop, program
from builders.graphs import const, node, placeholder
from heald.errors import HealdError, Internal, InvalidArgument, PluginError, Unknown
from heald.graphs.graph.graph import Graph
from heald.runtime.values import dtypes

X, P, INDEX = placeholder("x", ()), placeholder("p", (), dtypes.bool_), placeholder("i", (), dtypes.int32)
NEGATIVE = function("negative", "x", [node("same", "Identity", "x"), node("neg", "Neg", "same:output:0")],
                    {"y": "neg:y:0"})
SAME = function("same", "x", [node("kept", "Identity", "x")], {"y": "kept:output:0"})
BELOW = function("below", "i x", [const("most", 5), node("test", "Less", "i", "most:output:0")], {"go": "test:z:0"},
                 "go:bool_")
STEP = function("step", "i x", [const("one", 1), node("next", "AddV2", "i", "one:output:0"),
                                node("kept", "Identity", "x")], {"i": "next:z:0", "x": "kept:output:0"})
FLOW = {
    "branch": ([X, P, branch("y", "p", "negative", "same", "x")], (NEGATIVE, SAME)),
    "case": ([X, INDEX, case("y", "i", ["negative", "same"], "x")], (NEGATIVE, SAME)),
    "call": ([X, call("c", "negative", "x"), node("y", "Identity", "c")], (NEGATIVE,)),
    "fetched call": ([X, call("y", "negative", "x")], (NEGATIVE,)),
    "loop": ([const("start", 0), X, loop("y", "below", "step", "start", "x")], (BELOW, STEP)),
    "switches": ([X, P, node("s", "Switch", "x", "p"), node("no", "Identity", "s"), node("yes", "Neg", "s:1"),
                  node("y", "Merge", "no", "yes", N=2)], ()),
}


def without_an_input(graph: Graph) -> Iterator[tuple[str, Graph]]:
    for graph_node in graph:
        for index in range(len(graph_node.inputs)):
            fewer = graph_node.replace(inputs=graph_node.inputs[:index] + graph_node.inputs[index + 1:])
            yield graph_node.name, graph.replace(nodes=[fewer])
    for body in graph.functions.values():
        for graph_node in body.nodes.values():
            for index in range(len(graph_node.inputs)):
                fewer = graph_node.replace(inputs=graph_node.inputs[:index] + graph_node.inputs[index + 1:])
                changed = body.replace(nodes=[*{**body.nodes, graph_node.name: fewer}.values()])
                yield f"{body.name}/{graph_node.name}", graph.replace(functions=[changed])


@pytest.mark.parametrize("name", FLOW)
def test_a_node_without_one_of_its_inputs_is_a_typed_error(name):
    nodes, functions = FLOW[name]
    feeds = {node.name: 1 for node in nodes if node.op == "Placeholder"}
    tried = 0
    for _, graph in without_an_input(program(nodes, *functions)):
        tried += 1
        with heald.Session(graph) as session, pytest.raises(HealdError) as caught:
            session.run("y", feeds)
        assert not isinstance(caught.value, Internal | PluginError | Unknown), str(caught.value)
    assert tried > 1


def test_a_loop_whose_body_returns_an_identity_of_nothing_names_it():
    empty = STEP.replace(nodes=[*{**STEP.nodes, "kept": STEP.nodes["kept"].replace(inputs=())}.values()])
    with heald.Session(program(FLOW["loop"][0], BELOW, empty)) as session, pytest.raises(InvalidArgument) as caught:
        session.run("y", {"x": 1})
    assert "kept" in str(caught.value)


@pytest.mark.parametrize("source", ["neg:other:0", "neg:y:1", "neg:y:7"])
@pytest.mark.parametrize("flow", ["branch", "case", "call", "fetched call"])
def test_a_function_that_returns_an_output_which_its_node_lacks_is_an_error(flow, source):
    nodes, functions = FLOW[flow]
    wrong = function("negative", "x", [*NEGATIVE.nodes.values()], {"y": source})
    graph = program(nodes, wrong, *functions[1:])
    feeds = {node.name: np.zeros((), node.attrs["dtype"].numpy) for node in nodes if node.op == "Placeholder"}
    with pytest.raises(InvalidArgument, match="output"), heald.Session(graph) as session:
        session.run("y", feeds)
