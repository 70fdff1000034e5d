"""Calls of functions become the functions' nodes, which run as the call would."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, node, placeholder
from harness.run_op import REGISTRIES
from heald.errors import InvalidArgument, ResourceExhausted
from heald.graphs.compiler.inline import inline
from heald.graphs.graph.attr_value import AttrPlaceholder, Func
from heald.graphs.graph.graph import Function, Graph, Input, Node
from heald.graphs.graph.verifier import verify
from heald.runtime.contract.op import ArgDef
from heald_saved_model.unused_functions import without_unused_functions

OPS = REGISTRIES.ops
X, Y = ArgDef("x", FLOAT), ArgDef("y", FLOAT)


def call(name, function, *inputs, outputs=1, op="StatefulPartitionedCall", controls=(), **attrs):
    types = {"Tin": (FLOAT,) * len(inputs), "Tout": (FLOAT,) * outputs}
    return Node(name, op, inputs, controls=controls, attrs={"f": Func(function, attrs), **types})


def inline_and_verify(nodes, functions):
    graph, replacements, _ = inline(Graph(nodes, functions), OPS)
    verify(graph)
    return graph, replacements


TWICE = Function("twice", [X], [Y], [node("sum", "AddV2", "x", "x")], {"y": "sum:z:0"})


def test_a_call_gives_what_the_function_returns():
    graph, replacements = inline_and_verify([placeholder("a"), call("c", "twice", "a"), node("n", "Neg", "c")], [TWICE])
    assert graph["n"].inputs == (Input("c/sum"),)
    assert replacements == {Input("c"): Input("c/sum")}
    with heald.Session(graph) as session:
        assert session.run("n", {"a": np.float32(3)}) == -6


def test_calls_within_calls_may_return_arguments():
    both = Function("both", [X], [Y, ArgDef("same", FLOAT)], [
        call("inner", "twice", "x", op="PartitionedCall"), node("neg", "Neg", "inner:output:0")],
        {"y": "neg:y:0", "same": "x"})
    graph, replacements = inline_and_verify([placeholder("a"), call("c", "both", "a", outputs=2),
                                             call("d", "both", "c:1", outputs=2),
                                             node("n", "AddV2", "d", "d:1")], [TWICE, both])
    assert replacements[Input("d", None, 1)] == Input("a")
    with heald.Session(graph) as session:
        assert session.run("n", {"a": np.float32(3)}) == -3


def test_outputs_that_are_several_tensors_are_numbered():
    parts = Function("parts", [X], [Y], [Node("u", "Unpack", ["x"], attrs={"T": AttrPlaceholder("T"), "num": 3})],
                     {"y": "u:output:2"})
    graph, replacements = inline_and_verify([placeholder("a", (3,)), call("c", "parts", "a", T=FLOAT)], [parts])
    assert replacements[Input("c")] == Input("c/u", None, 2)
    assert graph["c/u"].attrs["T"] is FLOAT
    with pytest.raises(InvalidArgument, match="without its attribute 'T'"):
        inline_and_verify([placeholder("a", (3,)), call("c", "parts", "a")], [parts])


def test_control_edges_go_around_the_function():
    acting = Function("acting", [X], [Y], [
        Node("act", "Assert", ["x"], attrs={"T": (FLOAT,)}), node("out", "Neg", "x"), Node("free", "NoOp")],
        {"y": "out:y:0"}, control_ret={"act": "act"}, stateful=True)
    first, second = Node("first", "NoOp"), Node("second", "NoOp")
    graph, _ = inline_and_verify([placeholder("a"), first, second,
                                  call("c", "acting", "a", controls=["first", "second"]),
                                  Node("after", "NoOp", controls=["c"])], [acting])
    assert (graph["after"].controls, graph["c"].op, graph["c"].controls) == (("c",), "NoOp", ("c/act",))
    assert {graph[f"c/{name}"].controls for name in ("act", "out", "free")} == {("c/called",)}
    assert graph["c/called"].controls == ("first", "second")


def test_used_names_are_not_given_twice():
    graph, _ = inline_and_verify([placeholder("a"), node("c/sum", "Neg", "a"), call("c", "twice", "a")], [TWICE])
    assert [n.op for n in graph] == ["Placeholder", "Neg", "NoOp", "AddV2"]


def test_colocation_is_with_nodes_of_the_function():
    neighbour = Function("near", [X], [Y], [Node("l", "Neg", ["x"], attrs={"T": FLOAT}), Node(
        "m", "Neg", ["l:y:0"], attrs={"T": FLOAT, "_class": (b"loc:@l", b"loc:@elsewhere")})], {"y": "m:y:0"})
    graph, _ = inline_and_verify([placeholder("a"), call("c", "near", "a")], [neighbour])
    assert graph["c/m"].attrs["_class"] == (b"loc:@c/l",)


def test_colocation_with_a_call_is_with_the_node_of_its_first_output():
    """As tf.clip_by_global_norm asks for gradients that a call returns; also where the call is one of a function."""
    beside = {"T": FLOAT, "_class": (b"loc:@c", b"loc:@a")}
    graph, _ = inline_and_verify([placeholder("a"), call("c", "twice", "a"), Node("n", "Neg", ["a"], attrs=beside)],
                                 [TWICE])
    assert graph["n"].attrs["_class"] == (b"loc:@c/sum", b"loc:@a")
    outer = Function("outer", [X], [Y], [call("c", "twice", "x"), Node("n", "Neg", ["c:output:0"], attrs={
        "T": FLOAT, "_class": (b"loc:@c",)})], {"y": "n:y:0"})
    graph, _ = inline_and_verify([placeholder("a"), call("o", "outer", "a")], [TWICE, outer])
    assert graph["o/n"].attrs["_class"] == (b"loc:@o/c/sum",)


def test_a_function_that_calls_itself_stays_a_call():
    endless = Function("endless", [X], [Y], [call("again", "endless", "x")], {"y": "again:output:0"})
    graph, _ = inline_and_verify([placeholder("a"), call("c", "endless", "a")], [endless])
    assert graph["c/again"].op == "StatefulPartitionedCall"
    assert without_unused_functions(graph).functions.keys() == {"endless"}


def test_calls_that_do_not_fit_are_refused():
    with pytest.raises(InvalidArgument, match="takes 1 arguments, 2 are given"):
        inline_and_verify([placeholder("a"), call("c", "twice", "a", "a")], [TWICE])


@pytest.mark.parametrize(("largest", "few", "limit"), [(2000, 20_000, 2000), (200_000, 1000, 8200)])
def test_a_few_functions_do_not_become_a_million_nodes(monkeypatch, largest, few, limit):
    monkeypatch.setattr("heald.graphs.graph.expansion.LARGEST_NODE_LIMIT", largest)
    monkeypatch.setattr("heald.graphs.graph.expansion.LEAST_NODE_LIMIT", few)
    levels = [Function(f"f{n}", [X], [Y], [call("l", f"f{n + 1}", "x"), call("r", f"f{n + 1}", "l:output:0")],
                       {"y": "r:output:0"}) for n in range(40)]
    with pytest.raises(ResourceExhausted, match=f"more than {limit:,} nodes"):
        inline_and_verify([placeholder("a"), call("c", "f0", "a")], levels)


def test_a_function_that_would_pass_the_limit_is_refused_before_its_nodes_are_made(monkeypatch):
    body = Function("body", [X], [Y], [node(f"n{i}", "Neg", "x") for i in range(10)], {"y": "n0:y:0"})
    nodes = [placeholder("a"), call("c", "body", "a")]
    monkeypatch.setattr("heald.graphs.graph.expansion.LEAST_NODE_LIMIT", 1)
    monkeypatch.setattr("heald.graphs.graph.expansion.LARGEST_NODE_LIMIT", 12)
    assert len(inline_and_verify(nodes, [body])[0]) == 12
    monkeypatch.setattr("heald.graphs.graph.expansion.LARGEST_NODE_LIMIT", 11)
    with pytest.raises(ResourceExhausted, match="more than 11 nodes"):
        inline_and_verify(nodes, [body])


def test_names_do_not_become_longer_than_memory():
    body = Function("body", [X], [Y], [node(f"n{i}", "Neg", "x") for i in range(1000)], {"y": "n0:y:0"})
    with pytest.raises(ResourceExhausted, match="characters"):
        inline_and_verify([placeholder("a"), call("c" * 300_000, "body", "a")], [body])
