"""The pass `invariants`: nodes that compute the same in every turn of a loop are computed before it."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.control_flow import function, loop
from builders.graphs import FLOAT, const, node, placeholder
from harness.shared_runtimes import shared_runtime
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.graph_base import Versions
from heald.runtime.values import dtypes

INT = dtypes.int32
TYPES = "i:int32 x a b"
PLAIN = {"passes": {"disable": ["invariants"]}}


def product(name, *inputs, **attrs):
    return node(name, "MatMul", *inputs, transpose_a=False, transpose_b=False, **attrs)


def loop_graph(nodes, value, *, turns=3, a=(2, 3), b=(3, 2)):
    """A loop that adds `value` to the 2x2 matrix x in each turn. a and b are placeholders of these shapes."""
    limit, one = const("limit", turns, np.int32), const("one", 1, np.int32)
    below = function("below", TYPES, [limit, node("less", "Less", "i", "limit:output:0", T=INT)], {"go": "less:z:0"},
                     "go:bool_")
    body = function("body", TYPES, [one, node("next", "AddV2", "i", "one:output:0", T=INT), *nodes,
                                    node("sum", "AddV2", "x", value)],
                    {"i": "next:z:0", "x": "sum:z:0", "a": "a", "b": "b"}, "i:int32")
    return Graph([const("zero", 0, np.int32), placeholder("x", (2, 2)), placeholder("a", a), placeholder("b", b),
                  loop("m", "below", "body", "zero", "x", "a", "b", arguments=TYPES), node("y", "Identity", "m:1")],
                 [below, body], Versions(1000, 12))


def numbers(shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def outer_ops(graph, fetch="y"):
    with heald.Session(graph) as session:
        *_, (_, rewritten) = session.graphs_by_pass([fetch], ("x", "a", "b"))
    return sorted(entry.op for entry in rewritten if entry.name.startswith("m/body/"))


def check(graph, hoisted, a=(2, 3), b=(3, 2), fetch="y"):
    assert outer_ops(graph, fetch) == sorted(hoisted)
    feeds = {"x": numbers((2, 2)), "a": numbers(a), "b": numbers(b)}
    results = []
    for config in ({}, PLAIN):
        with heald.Session(graph, shared_runtime(config)) as session:
            results.append(session.run(fetch, feeds))
    np.testing.assert_allclose(results[0], results[1], 1e-6, 1e-6)


AB = product("p", "a", "b")
ORDER = const("order", [1, 0], np.int32)
HOISTED = {  # nodes, the value that is added, the hoisted ops, and the shapes of a and b
    "a product": ([AB], "p:product:0", ["MatMul"], {}),
    "a chain": ([AB, node("t", "Tanh", "p:product:0"), node("s", "Mul", "t:y:0", "p:product:0")], "s:z:0",
                ["MatMul", "Mul", "Tanh"], {}),
    "what a turn uses": ([AB, node("t", "Tanh", "p:product:0"), product("q", "x", "t:y:0")], "q:product:0",
                         ["MatMul", "Tanh"], {}),
    "a copy": ([node("copy", "Identity", "a"), product("p", "copy:output:0", "b")], "p:product:0", ["MatMul"], {}),
    "a constant of the body": ([const("half", 0.5), node("h", "Mul", "half:output:0", "a"),
                                product("p", "h:z:0", "b")], "p:product:0", ["Const", "MatMul", "Mul"], {}),
    "a transposed matrix": ([ORDER, node("t", "Transpose", "a", "order:output:0", Tperm=INT),
                             product("p", "t:y:0", "b")], "p:product:0", ["Const", "MatMul", "Transpose"],
                            {"a": (3, 2)}),
}


@pytest.mark.parametrize("name", HOISTED)
@pytest.mark.parametrize("turns", [0, 3])
def test_nodes_without_changing_inputs_are_computed_before_the_loop(name, turns):
    nodes, value, hoisted, shapes = HOISTED[name]
    check(loop_graph(nodes, value, turns=turns, **shapes), hoisted, **shapes)


def test_rows_of_unknown_number_are_hoisted_where_the_product_is_sure():
    nodes = [product("p", "a", "b"), const("axes", [0, 1], np.int32),
             node("s", "Sum", "p:product:0", "axes:output:0", Tidx=INT, keep_dims=False)]
    check(loop_graph(nodes, "s:output:0", a=(None, 3)), ["MatMul"])


STAYS = {
    "a product that may not fit": ([AB], "p:product:0", {"a": (None, None)}),
    "a product with the state": ([product("p", "a", "b"), product("q", "x", "x")], "q:product:0", {}),
    "a node that waits": ([AB.replace(controls=["next"])], "p:product:0", {}),
    "a node on a device of its own": ([AB.replace(device="/device:CPU:0")], "p:product:0", {}),
    "an op that may fail": ([Node("c", "CheckNumerics", ["a"], attrs={"T": FLOAT, "message": b""}),
                             product("p", "x", "x")], "p:product:0", {}),
    "an argument alone": ([node("i2", "Identity", "a"), product("p", "i2:output:0", "x")], "p:product:0",
                          {"a": (2, 2), "b": (2, 2)}),
}


@pytest.mark.parametrize("name", STAYS)
def test_other_nodes_stay_in_the_loop(name):
    nodes, value, shapes = STAYS[name]
    fed = {key: tuple(size or 2 + (index > 0) for index, size in enumerate(shape)) for key, shape in shapes.items()}
    check(loop_graph(nodes, value, **shapes), [], **fed)


def test_a_variable_that_a_turn_changes_stays():
    nodes = [AB, node("n", "Neg", "a")]
    graph = loop_graph(nodes, "p:product:0")
    body = graph.functions["body"]
    check(graph.replace(functions=[body.replace(ret={**body.ret, "a": "n:y:0"})]), [])


def test_a_fetched_loop_stays():
    check(loop_graph([AB], "p:product:0"), [], fetch="m:1")


def test_two_loops_over_one_body_are_hoisted_alike():
    graph = loop_graph([AB], "p:product:0")
    second = loop("m2", "below", "body", "zero", "m:1", "a", "b", arguments=TYPES)
    check(graph.replace(nodes=[second, node("y", "Identity", "m2:1")]), ["MatMul"])
