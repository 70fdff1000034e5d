"""Pruning orders the nodes of a step, with loops."""

from __future__ import annotations

import pytest
from builders.control_flow_v1 import INT, OPS, ControlFlowBuilder
from heald.errors import InvalidArgument
from heald.graphs.compiler.prune import prune
from heald.graphs.compiler.resolve import resolve
from heald.graphs.graph.graph import Graph, Node


def order_of(graph, *fetches, fed=()):
    return [entry.node.name for entry in prune(resolve(graph, OPS), fed, [(name, 0) for name in fetches], ())]


def test_nodes_of_a_loop_come_after_their_inputs_but_for_next_iterations():
    build = ControlFlowBuilder()
    x = build.add("Placeholder", dtype=INT)
    exits = build.while_loop(lambda a, _: build.op("Less", a, x), lambda a, b: [build.op("Add", a, b), a],
                             [build.const(0), build.const(1)])
    build.const(5)  # not needed
    graph = build.graph()
    order = order_of(graph, exits[1], fed=[(x, 0)])
    needed = {node.name for node in graph} - {x, "Exit_0", [*graph.nodes][-1], exits[0]}
    assert {*order} == needed
    position = {name: index for index, name in enumerate(order)}
    late = {(node.name, tensor.node) for node in graph for tensor in node.inputs
            if node.name in position and tensor.node in position and position[tensor.node] > position[node.name]}
    assert {graph[source].op for _, source in late} == {"NextIteration"}


def test_cycles_without_next_iteration_are_refused():
    graph = Graph([Node("a", "Identity", ["b"], attrs={"T": INT}), Node("b", "Identity", ["a"], attrs={"T": INT})])
    with pytest.raises(InvalidArgument, match="a cycle leads from 'a' back to 'b'") as caught:
        order_of(graph, "a")
    assert caught.value.node == "b"
