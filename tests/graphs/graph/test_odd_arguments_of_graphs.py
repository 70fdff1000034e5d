"""Arguments of graphs and functions that do not fit are typed errors that say what to pass."""

from __future__ import annotations

import pytest
from heald.errors import InvalidArgument, NotFound
from heald.graphs.graph.graph import Function, Graph, Node
from heald.runtime.contract.op import ArgDef
from heald.runtime.values import dtypes

X = Node("x", "NoOp")
GRAPH = Graph([X])
FUNCTION = Function("f", [ArgDef("a", dtypes.float32)], [], [X])
ODD = {  # a call, and a part of its error
    "names for nodes": (lambda: Graph(GRAPH.nodes), "item of type str.*mapping.values()"),
    "None for nodes": (lambda: Graph(None), "NoneType is no list of Node objects.*pass .Node"),
    "one node": (lambda: Graph(X), "Node is no list of Node objects"),
    "a text": (lambda: Graph("x"), "item of type str"),
    "a number among nodes": (lambda: Graph([X, 3]), "item of type int"),
    "a function among nodes": (lambda: Graph([X, FUNCTION]), "item of type Function"),
    "a dict of functions": (lambda: Graph([X], {"f": FUNCTION}), "item of type str.*mapping.values()"),
    "a node among functions": (lambda: Graph([X], [X]), "list of Function objects has an item of type Node"),
    "None for functions": (lambda: Graph([X], None), "NoneType is no list of Function"),
    "a number as versions": (lambda: Graph([X], versions=3), "versions= is int"),
    "a number as new versions": (lambda: GRAPH.replace(versions=3), "versions= is int"),
    "a number as new nodes": (lambda: GRAPH.replace(nodes=3), "int is no list of Node"),
    "a dict of numbers": (lambda: GRAPH.replace(nodes={"x": 3}), "item of type int"),
    "a name as names": (lambda: GRAPH.replace(without="x"), "'x' is one name.*pass .'x'"),
    "numbers as names": (lambda: GRAPH.replace(without=[3]), "list of str objects has an item of type int"),
    "a number as names": (lambda: GRAPH.replace(without_functions=3), "int is no list of str"),
    "no nodes at all": (lambda: GRAPH.with_nodes(None), "NoneType is no list"),
    "a number as a name": (lambda: GRAPH[3], "name of a node is a str, not int"),
    "a list as a name": (lambda: GRAPH[["x"]], "name of a node is a str, not list"),
    "None for arguments": (lambda: Function("f", None), "NoneType is no list of ArgDef"),
    "texts for results": (lambda: FUNCTION.replace(outputs=["y"]), "list of ArgDef objects has an item of type str"),
    "names for a function's nodes": (lambda: FUNCTION.replace(nodes=GRAPH.nodes), "item of type str"),
}


@pytest.mark.parametrize(("make", "message"), ODD.values(), ids=ODD)
def test_an_argument_that_does_not_fit_is_a_typed_error(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()


def test_empty_collections_of_any_kind_are_none():
    for graph in (Graph({}), Graph((), {}), Graph(iter(()))):
        assert not graph.nodes
        assert not graph.functions
    assert GRAPH.replace(nodes={}, functions={}, without={}).nodes == GRAPH.nodes


def test_the_name_of_a_node_stays_in_the_line_of_its_error():
    for make in (lambda: Graph([Node("a\nb", "NoOp")] * 2), lambda: GRAPH["x\nerror: y"]):
        with pytest.raises((InvalidArgument, NotFound)) as caught:
            make()
        assert "\n" not in str(caught.value)
