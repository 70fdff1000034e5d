"""The pass `counts`: a While that counts its turns becomes a For. Both give the same results."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.control_flow import function, loop
from builders.graphs import FLOAT, const, node, placeholder
from harness.shared_runtimes import shared_runtime
from heald.errors import InvalidArgument
from heald.graphs.graph.attr_value import Func
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.graph.graph_base import Versions
from heald.runtime.values import dtypes

INT = dtypes.int32
WHILE = {"passes": {"disable": ["counts"]}}
TYPES = "i:int32 n:int32 x"
OF_INT = {"T": INT}
ONE = const("one", 1, np.int32)
NEXT = node("next", "AddV2", "i", "one:output:0", **OF_INT)
MORE = [Node("f", "Cast", ["i"], attrs={"SrcT": INT, "DstT": FLOAT}), node("twice", "AddV2", "x", "x"),
        node("more", "AddV2", "twice:z:0", "f:y:0")]


def below(*nodes, go="test:z:0", types=TYPES):
    return function("below", types, nodes or [node("test", "Less", "i", "n", **OF_INT)], {"go": go}, "go:bool_")


def body(*nodes, i="next:z:0", n="n", x="more:z:0"):
    return function("body", TYPES, nodes or [ONE, NEXT, *MORE], {"i": i, "n": n, "x": x}, "i:int32 n:int32")


def counting(*functions, start=None, n=None, op="While"):
    """A loop "w" over i, n and x. `start`, `n`: known numbers, else placeholders."""
    def number(name, value):
        return placeholder(name, (), INT) if value is None else const(name, value, np.int32)

    nodes = [number("i", start), number("n", n), placeholder("x", (2,)),
             loop("w", "below", "body", "i", "n", "x", arguments=TYPES).replace(op=op)]
    return Graph(nodes, functions or [below(), body()], Versions(1000, 12))


def ops_after_passes(graph, fetches=("w:2",)):
    feeds = tuple(entry.name for entry in graph if entry.op == "Placeholder")
    with heald.Session(graph) as session:
        *_, (_, rewritten) = session.graphs_by_pass(list(fetches), feeds)
    return {entry.op for entry in rewritten} & {"While", "StatelessWhile", "For"}


def results(graph, feeds, fetches=("w:0", "w:1", "w:2"), config=None):
    fed = {entry.name for entry in graph if entry.op == "Placeholder"}
    with heald.Session(graph, shared_runtime(config)) as session:
        return [result.tolist() for result in
                session.run(list(fetches), {name: value for name, value in feeds.items() if name in fed})]


@pytest.mark.parametrize("op", ["While", "StatelessWhile"])
@pytest.mark.parametrize(("start", "n"), [(0, 5), (None, 5), (0, None), (None, None), (7, 3), (-2, 1)])
def test_a_while_that_counts_is_a_for_of_the_same_results(start, n, op):
    graph = counting(start=start, n=n, op=op)
    assert ops_after_passes(graph) == {"For"}
    last = [(2**31 - 3, 2**31 - 1)] if start is n is None else []
    for i, end in ((0, 5), (3, 4), (4, 4), (9, 2), (-3, 0), *last):
        feeds = {"i": np.int32(i), "n": np.int32(end), "x": [1, 2]}
        assert results(graph, feeds) == results(graph, feeds, config=WHILE)


COUNTED = {
    "a bound in the condition": (below(const("end", 5, np.int32), node("test", "Less", "i", "end:output:0", **OF_INT)),
                                 body()),
    "greater": (below(node("test", "Greater", "n", "i", **OF_INT)), body()),
    "two bounds": (below(const("end", 5, np.int32), node("a", "Less", "i", "end:output:0", **OF_INT),
                         node("b", "Less", "i", "n", **OF_INT), Node("test", "LogicalAnd", ["a:z:0", "b:z:0"])),
                   body()),
    "copies": (below(Node("j", "Identity", ["i"], attrs=OF_INT), node("test", "Less", "j:output:0", "n", **OF_INT),
                     Node("go", "Identity", ["test:z:0"], attrs={"T": dtypes.bool_}), go="go:output:0"),
               body(ONE, NEXT, *MORE, Node("k", "Identity", ["next:z:0"], attrs=OF_INT), i="k:output:0")),
    "one plus the counter": (below(), body(ONE, node("next", "Add", "one:output:0", "i", **OF_INT), *MORE)),
    "no consumer of the counter": (below(), body(ONE, NEXT, node("more", "Neg", "x"), x="more:y:0")),
}


@pytest.mark.parametrize("name", COUNTED)
def test_loops_count_in_several_forms(name):
    graph = counting(*COUNTED[name], start=1)
    assert ops_after_passes(graph) == {"For"}
    for n in (0, 4, 9):
        feeds = {"n": np.int32(n), "x": [1, 2]}
        assert results(graph, feeds) == results(graph, feeds, config=WHILE)


OTHER = {
    "a step of two": (below(), body(const("one", 2, np.int32), NEXT, *MORE)),
    "a difference": (below(), body(const("one", -1, np.int32), node("next", "Sub", "i", "one:output:0", **OF_INT),
                                   *MORE)),
    "a bound that changes": (below(), body(ONE, NEXT, node("end", "Sub", "n", "one:output:0", **OF_INT), *MORE,
                                         n="end:z:0")),
    "or equal": (below(node("test", "LessEqual", "i", "n", **OF_INT)), body()),
    "another condition": (below(node("a", "Less", "i", "n", **OF_INT), const("axis", 0, np.int32),
                                node("sum", "Max", "x", "axis:output:0", Tidx=INT, keep_dims=False),
                                const("most", 40), node("b", "Less", "sum:output:0", "most:output:0"),
                                Node("test", "LogicalAnd", ["a:z:0", "b:z:0"])), body()),
    "an effect": (below(), body(ONE, NEXT, *MORE, node("r", "RandomUniform", "one:output:0", dtype=FLOAT,
                                                      **OF_INT))),
    "a number of turns in an array": (below(), body()),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_while_that_asks_for_more_stays(name):
    graph = counting(*OTHER[name], start=0)
    if name == "a number of turns in an array":
        graph = graph.replace(nodes=[placeholder("n", None, INT)])
    assert ops_after_passes(graph) & {"While", "StatelessWhile", "For"} == {"While"}
    feeds = {"n": np.int32(4), "x": [1, 2]}
    assert results(graph, feeds) == results(graph, feeds, config=WHILE)


@pytest.mark.parametrize(("start", "op"), [(0, "For"), (1, "While")])
def test_two_counters_are_one_where_they_begin_alike(start, op):
    types = "i:int32 j:int32 x"
    graph = Graph(
        [const("i", 0, np.int32), const("j", start, np.int32), placeholder("x", (2,)),
         loop("w", "below", "body", "i", "j", "x", arguments=types)],
        [below(const("end", 3, np.int32), node("a", "Less", "i", "end:output:0", **OF_INT),
               node("b", "Less", "j", "end:output:0", **OF_INT), Node("test", "LogicalAnd", ["a:z:0", "b:z:0"]),
               types=types),
         function("body", types, [ONE, NEXT, node("after", "AddV2", "j", "one:output:0", **OF_INT),
                                  node("sum", "AddV2", "i", "j", **OF_INT),
                                  Node("f", "Cast", ["sum:z:0"], attrs={"SrcT": INT, "DstT": FLOAT}),
                                  node("more", "AddV2", "x", "f:y:0")],
                  {"i": "next:z:0", "j": "after:z:0", "x": "more:z:0"}, "i:int32 j:int32")], Versions(1000, 12))
    assert ops_after_passes(graph) == {op}
    assert results(graph, {"x": [1, 2]}) == results(graph, {"x": [1, 2]}, config=WHILE)


def test_loops_within_loops_count_too():
    inner = [const("start", 0, np.int32),
             loop("inner", "below", "body", "start:output:0", "n", "x", arguments=TYPES)]
    outer = function("outer", TYPES, [ONE, NEXT, *inner],
                     {"i": "next:z:0", "n": "n", "x": "inner:output:2"}, "i:int32 n:int32")
    graph = counting(below(), body(), outer, start=0)
    graph = graph.replace(nodes=[graph["w"].replace(attrs={"body": Func("outer")})])
    feeds = {"n": np.int32(4), "x": [1, 2]}
    assert ops_after_passes(graph) == {"For"}
    assert results(graph, feeds) == results(graph, feeds, config=WHILE)
    with heald.Session(graph) as session:
        program = session.prepare(["w:2"], ["n", "x"]).program
    codes = {call.code for called in program.functions.values() for call in called.kernels if call.functions}
    assert codes == {"heald.for"}


def test_an_error_in_a_turn_names_the_node_in_its_function():
    checked = Node("more", "CheckNumerics", ["f:y:0"], attrs={"T": FLOAT, "message": b"no number"})
    log = [Node("c", "Cast", ["i"], attrs={"SrcT": INT, "DstT": FLOAT}), node("f", "Log", "c:y:0"), checked]
    graph = counting(below(), body(ONE, NEXT, *log, x="more:output:0"), start=0)
    with heald.Session(graph) as session, pytest.raises(InvalidArgument, match="no number") as caught:
        session.run("w:2", {"n": np.int32(4), "x": [1, 2]})
    assert caught.value.node == "w/body/more"
