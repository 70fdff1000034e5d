"""The first run of a graph takes work in proportion to its nodes, for all shapes of graphs."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.control_flow import branch, call, function
from builders.graphs import FLOAT, const, node, placeholder
from harness.work import count_work
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes

NODES = 100
MOST_GROWTH = 2.02  # of the work, for twice the nodes
UNARY = ("Neg", "Abs", "Tanh", "Exp", "Relu", "Sigmoid")
BODIES = [function("then", "a", [node("y", "Tanh", "a")], {"r": "y:y:0"}),
          function("else", "a", [node("y", "Neg", "a")], {"r": "y:y:0"})]
X, P = placeholder("x"), placeholder("p", (), dtypes.bool_)


def before(name, number, first="x"):
    return f"{name}{number - 1}" if number else first


def behind_one_node(nodes, count):
    """The nodes "n0" to "n{count - 1}" behind one node, and the target."""
    return [*nodes, Node("all", "NoOp", controls=[f"n{i}" for i in range(count)])], "all"


def products(count, source="x"):
    return [node_or_constant for i in range(count)
            for node_or_constant in (const(f"c{i}", i), node(f"n{i}", "Mul", source, f"c{i}"))]


def consumers_of_a_feed(count):
    return behind_one_node(products(count), count)


def consumers_of_a_node(count):
    return behind_one_node([node("y", "Tanh", "x"), *products(count, "y")], count)


def nodes_under_a_no_op(count):
    return behind_one_node([node(f"n{i}", "Neg", "x") for i in range(count)], count)


def terms_of_a_sum(count):
    return [*products(count), node("all", "AddN", *(f"n{i}" for i in range(count)), N=count)], "all"


def outputs_of_a_split(count):
    parts = [const("axis", 0, np.int32), node("parts", "Split", "axis", "x", num_split=count),
             *(node(f"n{i}", "Tanh", f"parts:{i}") for i in range(count))]
    return behind_one_node(parts, count)


def a_chain_of_unary_nodes(count):
    return [node(f"n{i}", UNARY[i % len(UNARY)], before("n", i)) for i in range(count)], f"n{count - 1}"


def a_chain_with_a_constant(count):
    return [const("c", 2), *(node(f"n{i}", ("AddV2", "Maximum")[i % 2], before("n", i), "c") for i in range(count))], (
        f"n{count - 1}")


def a_chain_of_control_edges(count):
    nodes = [Node(f"n{i}", "Tanh", ["x"], controls=[before("n", i)] if i else [], attrs={"T": FLOAT})
             for i in range(count)]
    return nodes, f"n{count - 1}"


def a_chain_of_calls(count):
    return [call(f"n{i}", "then", before("n", i)) for i in range(count)], f"n{count - 1}"


def a_chain_of_ifs(count):
    return [branch(f"n{i}", "p", "then", "else", before("n", i)) for i in range(count)], f"n{count - 1}"


def a_chain_of_switches(count):
    nodes = [node_or_constant for i in range(count) for node_or_constant in (
        node(f"s{i}", "Switch", before("n", i), "p"), node(f"t{i}", "Tanh", f"s{i}:1"),
        node(f"n{i}", "Merge", f"s{i}", f"t{i}", N=2))]
    return nodes, f"n{count - 1}"


GRAPHS = [consumers_of_a_feed, consumers_of_a_node, nodes_under_a_no_op, terms_of_a_sum, outputs_of_a_split,
          a_chain_of_unary_nodes, a_chain_with_a_constant, a_chain_of_control_edges, a_chain_of_calls, a_chain_of_ifs,
          a_chain_of_switches]


def first_run(make, count):
    nodes, target = make(count)
    graph = Graph([X, P, *nodes], BODIES)

    def run():
        with heald.Session(graph) as session:
            session.run([], {"x": np.ones(count, np.float32), "p": np.bool_(True)}, targets=[target])

    return run


@pytest.mark.parametrize("make", GRAPHS, ids=lambda make: make.__name__)
def test_twice_the_nodes_take_twice_the_work(make):
    first_run(make, 8)()  # imports modules, and loads kernels
    work = count_work(first_run(make, NODES))
    assert count_work(first_run(make, 2 * NODES)) <= MOST_GROWTH * work


def test_functions_of_a_graph_are_shared_by_the_graphs_that_its_edits_give():
    graph = Graph([X], BODIES)
    assert graph.replace(nodes=[P]).functions is graph.functions
    assert graph.with_nodes([P]).replace(without=["p"]).functions is graph.functions
    assert graph.replace(without_functions=["then"]).functions.keys() == {"else"}
