"""Duplicates: of nodes with equal op, attributes and inputs, one stays."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, node, placeholder
from builders.rewritten_graphs import (
    INT,
    PASSES,
    op_counts,
    optimized_graph,
    rewrite_and_compare,
    session_with_passes,
    vector,
)
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Node, TensorValue


def twin_chains():
    """Two chains of two nodes over x, and their sum."""
    return [placeholder("x", (1, 4, 4, 2)), node("a", "Relu", "x"), node("b", "Relu", "x"), max_pool("c", "a"),
            max_pool("d", "b"), node("y", "AddV2", "c", "d")]


def max_pool(name, x):
    return node(name, "MaxPool", x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC")


def test_equal_nodes_are_merged_into_one():
    rewritten = rewrite_and_compare(twin_chains(), "duplicates")
    assert op_counts(rewritten) == {"Relu": 1, "MaxPool": 1, "AddV2": 1}
    assert [str(source) for source in rewritten["y"].inputs] == ["c", "c"]


@pytest.mark.parametrize(("fetched", "relus"), [("a", 1), ("b", 2)])
def test_a_fetched_duplicate_stays(fetched, relus):
    assert op_counts(rewrite_and_compare(twin_chains(), "duplicates", fetches=("y", fetched)))["Relu"] == relus

DIFFERENT = {
    "op": [node("a", "Relu", "x"), node("b", "Elu", "x")],
    "attributes": [node("a", "LeakyRelu", "x", alpha=0.5), node("b", "LeakyRelu", "x", alpha=0.25)],
    "inputs": [node("z", "Neg", "x"), node("a", "Relu", "x"), node("b", "Relu", "z")],
    "order of inputs": [const("c", 3), node("a", "Sub", "x", "c"), node("b", "Sub", "c", "x")],
    "place": [node("a", "Relu", "x"), node("b", "Relu", "x", device="EXAMPLE:0")],
    "control edges": [node("a", "Relu", "x"), Node("w", "Assert", ["yes", "x"], attrs={"T": [FLOAT]}),
                      const("yes", True, np.bool_), node("b", "Relu", "x").replace(controls=["w"])],
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_nodes_that_differ_are_no_duplicates(case):
    nodes = [placeholder("x", (3, 2)), *DIFFERENT[case], node("y", "AddV2", "a", "b")]
    rewritten = rewrite_and_compare(nodes, "duplicates")
    assert {"a", "b"} <= rewritten.nodes.keys()


def test_many_nodes_that_differ_are_not_compared_with_each_other(monkeypatch):
    compared_pairs, equal = [], TensorValue.__eq__
    nodes = [node(f"n{i}", "Exp", "x", _number=np.array(i)) for i in range(200)]
    full_graph = graph(placeholder("x", (2,)), *nodes,
                       node("y", "AddN", *(graph_node.name for graph_node in nodes), N=len(nodes)))
    with heald.Session(full_graph, {"placement": {"fallback": "allow"}}) as running:
        monkeypatch.setattr(TensorValue, "__eq__", lambda a, b: compared_pairs.append((a, b)) or equal(a, b))
        *_, (_, rewritten) = running.graphs_by_pass(["y"], ["x"])
    assert op_counts(rewritten)["Exp"] == len(nodes)
    assert len(compared_pairs) <= len(nodes)


def test_random_numbers_are_drawn_by_each_for_itself():
    nodes = [vector("shape", [64]), *(Node(name, "RandomUniform", ["shape"], attrs={"T": INT, "dtype": FLOAT})
                                      for name in ("a", "b")), node("y", "Sub", "a", "b")]
    assert session_with_passes(nodes, *PASSES).run("y").any()


def test_reads_before_and_after_a_write_of_a_variable_are_not_merged():
    nodes = [Node("v", "VariableV2", attrs={"dtype": FLOAT, "shape": ShapeAttr(())}), const("one", 1),
             node("begin", "Assign", "v", "one"), node("a", "Neg", "v"),
             node("write", "AssignAdd", "v", "one").replace(controls=["a"]),
             node("b", "Neg", "v").replace(controls=["write"]), node("y", "Sub", "a", "b")]
    rewritten = optimized_graph(nodes, *PASSES, feeds=())
    assert op_counts(rewritten)["Neg"] == 2
