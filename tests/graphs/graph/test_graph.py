"""Nodes, functions and graphs: edits touch named parts only, orders are stable, the verifier names the culprit."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from heald.errors import InvalidArgument, NotFound
from heald.graphs.graph.graph import (
    Func,
    Function,
    Graph,
    Input,
    Node,
    ShapeAttr,
    Versions,
    consumers,
    topological_order,
    verify,
)
from heald.graphs.graph.node import parse_input
from heald.runtime.contract.op import ArgDef
from heald.runtime.values import dtypes, wire
from hypothesis import given, settings
from hypothesis import strategies as st

QUICK = settings(max_examples=60)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n", Input("n")), ("n:0", Input("n", None, 0)), ("a/b:12", Input("a/b", None, 12)),
        ("n:out:0", Input("n", "out", 0)), ("n:out", Input("n", "out", 0)), ("n:_x9:3", Input("n", "_x9", 3)),
    ],
)
def test_inputs_are_read(text: str, expected: Input) -> None:
    assert parse_input(text) == expected
    assert parse_input(str(expected)) == expected


NO_PORTS = ["n:-1", "n:" + "9" * 21, "n:3000000000", "n:", "n::0", "n:a:b", "n:1:2", "n:a:0:1", "n:²", "n:a b:0"]


@pytest.mark.parametrize("text", NO_PORTS)
def test_ports_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="port") as caught:
        Node("me", "Relu", [text])
    assert (caught.value.node, caught.value.op) == ("me", "Relu")


def test_a_node_is_made_of_plain_values() -> None:
    inputs = ["x", Input("w", None, 1), "^c"]
    node = Node("y", "Foo", inputs, controls=["d"], device="/cpu:0", attrs={"T": dtypes.float32})
    assert node.inputs == (("x", None, 0), ("w", None, 1))
    assert node.controls == ("d", "c")
    again = Node.read(node.raw)
    for field in ("name", "op", "inputs", "controls", "device", "attrs"):
        assert getattr(again, field) == getattr(node, field)


def test_a_node_does_not_change() -> None:
    node = Node("y", "Foo", attrs={"n": 1})
    with pytest.raises(AttributeError, match="replace"):
        node.device = "/gpu:0"
    with pytest.raises(TypeError):
        node.attrs["n"] = 2  # type: ignore[index]
    with pytest.raises(AttributeError, match="replace"):
        Graph([node]).versions = Versions(1)


def unknown(number: int, text: str) -> bytes:
    return wire.put_bytes(number, text)


Z = wire.put_bytes(5, wire.put_bytes(1, "z") + wire.put_bytes(2, wire.put_integer(3, 1)))
K = wire.put_bytes(5, wire.put_bytes(2, wire.put_integer(3, 2)) + wire.put_bytes(1, "k") + unknown(9, "?"))


def raw_node() -> bytes:
    """A node with fields out of order, attributes out of order, and unknown fields."""
    inputs = b"".join(wire.put_bytes(3, text) for text in ("a:0", "b:1", "^c"))
    names = (wire.put_bytes(2, "Foo"), K, wire.put_bytes(1, "n"))
    return b"".join((unknown(77, "first"), Z, inputs, *names, unknown(6, "debug")))


def test_an_untouched_node_keeps_its_bytes() -> None:
    node = Node.read(raw_node())
    assert node.raw == raw_node()
    assert node.replace(assigned_device="CPU:0").raw == raw_node()
    assert node.attrs == {"z": 1, "k": 2}
    assert node.extra == unknown(77, "first") + unknown(6, "debug")


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        ({"name": "m"}, wire.put_bytes(1, "n"), wire.put_bytes(1, "m")),
        ({"op": "Bar"}, wire.put_bytes(2, "Foo"), wire.put_bytes(2, "Bar")),
        ({"inputs": ["a", "w"]}, wire.put_bytes(3, "b:1"), wire.put_bytes(3, "w")),
        ({"controls": ["^e"]}, wire.put_bytes(3, "^c"), wire.put_bytes(3, "^e")),
        ({"attrs": {"z": 5}}, wire.put_integer(3, 1), wire.put_integer(3, 5)),
        ({"device": "/cpu:0"}, unknown(77, "first"), wire.put_bytes(4, "/cpu:0") + unknown(77, "first")),
        ({"without_attrs": ["z"]}, Z, b""),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_edit_changes_its_own_bytes_only(change: dict[str, Any], old: bytes, new: bytes) -> None:
    assert Node.read(raw_node()).replace(**change).raw == raw_node().replace(old, new, 1)


def test_edits_add_up() -> None:
    node = Node.read(raw_node()).replace(attrs={"z": 9, "new": "v"}).replace(name="m").replace(without_attrs=["k"])
    again = Node.read(node.raw)
    assert (again.name, dict(again.attrs), again.extra) == ("m", {"z": 9, "new": b"v"}, node.extra)
    back = node.replace(name="n", attrs={"z": 1, "k": 2}, without_attrs=["new"])
    assert sorted(back.attrs) == ["k", "z"]


def test_attributes_move_from_node_to_node() -> None:
    attrs = {"a": None, "b": ShapeAttr((1, None)), "c": Func("f", {"T": dtypes.bool_}), "d": [1.5], "e": "text"}
    one = Node("one", "Foo", attrs=attrs)
    two = Node("two", "Bar").replace(attrs=one.attrs)
    assert Node.read(two.raw).attrs == one.attrs == {**attrs, "d": (1.5,), "e": b"text"}


def test_wrong_values_name_node_and_attribute() -> None:
    with pytest.raises(InvalidArgument, match="attribute 'x': a value of type object") as caught:
        Node("n", "Foo", attrs={"x": object()})
    assert caught.value.node == "n"
    with pytest.raises(InvalidArgument, match="comes after a control"):
        Node("n", "Foo", ["^a", "b"])
    with pytest.raises(InvalidArgument, match="controls="):
        Node("n", "Foo").replace(inputs=["^a"])


def chain(count: int) -> list[Node]:
    return [Node(f"n{i}", "Foo", [f"n{i - 1}"] if i else []) for i in range(count)]


def test_a_graph_is_edited_into_a_new_one_that_shares_nodes() -> None:
    graph = Graph(chain(4))
    changed = graph["n1"].replace(device="/cpu:0")
    new = graph.replace(nodes={"n1": changed, "x": Node("x", "Bar")}, without=["n3"])
    assert list(new.nodes) == ["n0", "n1", "n2", "x"]
    assert new["n0"] is graph["n0"]
    assert new["n1"] is changed
    assert list(graph.nodes) == ["n0", "n1", "n2", "n3"]
    assert ("n3" in graph, "n3" in new, len(new), [n.name for n in new]) == (True, False, 4, list(new.nodes))


def test_a_graph_says_what_is_wrong_with_an_edit() -> None:
    graph = Graph(chain(2))
    with pytest.raises(NotFound, match="did you mean"):
        graph["n"]
    with pytest.raises(NotFound):
        graph.replace(without=["zzz"])
    with pytest.raises(InvalidArgument, match="under the name"):
        graph.replace(nodes={"a": Node("b", "Foo")})
    with pytest.raises(InvalidArgument, match="two nodes"):
        graph.replace(nodes=[Node("b", "Foo"), Node("b", "Foo")])
    with pytest.raises(InvalidArgument, match="two functions"):
        Graph([], [Function("f"), Function("f")])


def test_graphs_and_nodes_are_pickled() -> None:
    graph = Graph(chain(3), versions=Versions(7, 1, (3,)))
    again = pickle.loads(pickle.dumps(graph))  # noqa: S301
    assert [n.raw for n in again] == [n.raw for n in graph]
    assert again.versions == graph.versions
    placed = graph["n1"].replace(assigned_device="CPU:0")
    for node in (pickle.loads(pickle.dumps(placed)), pickle.loads(pickle.dumps(graph.replace(nodes=[placed])))["n1"]):  # noqa: S301
        assert (node.raw, node.assigned_device) == (graph["n1"].raw, "CPU:0")


def function(nodes: list[Node] | None = None) -> Function:
    nodes = [Node("add", "AddV2", ["a", "a"])] if nodes is None else nodes
    return Function("f", [ArgDef("a", dtypes.float32)], [ArgDef("y", type_attr="T")], nodes, {"y": "add:z:0"},
                    control_ret={"c": "add"}, attrs={"_x": 1}, stateful=True)


def test_a_function_is_made_read_and_edited() -> None:
    from heald.graphs.graph.graphdef import dumps, loads

    graph = loads(dumps(Graph([], [function()])))
    from_graph = graph.functions["f"]
    assert (from_graph.inputs, from_graph.outputs) == (function().inputs, function().outputs)
    assert (from_graph.ret, from_graph.control_ret, from_graph.control_outputs) == ({"y": Input("add", "z", 0)},
                                                                                    {"c": "add"}, ("c",))
    assert (dict(from_graph.attrs), from_graph.stateful, list(from_graph.nodes)) == ({"_x": 1}, True, ["add"])
    renamed = from_graph.replace(name="g", stateful=False, attrs={"_y": "v"}, nodes=[Node("add", "AddV2", ["a", "b"])],
                                 inputs=[*from_graph.inputs, ArgDef("b", dtypes.float32, is_ref=True)])
    again = loads(dumps(graph.replace(functions=[renamed], without_functions=["f"]))).functions["g"]
    assert (again.name, again.stateful, dict(again.attrs)) == ("g", False, {"_x": 1, "_y": b"v"})
    assert again.inputs == renamed.inputs
    assert again.nodes["add"].inputs == (Input("a"), Input("b"))
    assert again.ret == from_graph.ret


def test_an_edited_signature_keeps_what_has_no_name_here() -> None:
    arg = wire.put_bytes(1, "a") + wire.put_bytes(2, "described") + wire.put_integer(3, 1)
    signature = wire.put_bytes(1, "f") + wire.put_bytes(2, arg) + wire.put_bytes(6, "a function") + unknown(99, "?")
    raw = unknown(50, "?") + wire.put_bytes(1, signature) + wire.put_bytes(8, b"\x08\x00\x10\x07")
    library = wire.put_bytes(2, wire.put_bytes(1, raw) + wire.put_bytes(2, "gradient"))
    from heald.graphs.graph.graphdef import dumps, loads

    graph = loads(library)
    assert graph.functions["f"].raw == raw
    new = dumps(graph.replace(functions=[graph.functions["f"].replace(name="g")], without_functions=["f"]))
    expected = signature.replace(wire.put_bytes(1, "f"), wire.put_bytes(1, "g"), 1)
    assert new == wire.put_bytes(2, wire.put_bytes(1, raw.replace(signature, expected)) + wire.put_bytes(2, "gradient"))


def test_nodes_in_order_stay_in_order_and_others_are_sorted() -> None:
    nodes = chain(5)
    assert topological_order(Graph(nodes)) == nodes
    assert topological_order(Graph(nodes[::-1])) == nodes


def test_a_long_chain_needs_no_recursion() -> None:
    nodes = chain(20_000)
    assert topological_order(Graph(nodes[::-1])) == nodes


def test_loops_go_through_next_iteration() -> None:
    loop = [
        Node("enter", "Enter"), Node("merge", "Merge", ["enter", "next"]), Node("body", "Foo", ["merge"]),
        Node("next", "NextIteration", ["body"]),
    ]
    graph = Graph(loop)
    verify(graph)
    assert topological_order(graph) == loop


def test_a_cycle_names_its_nodes() -> None:
    graph = Graph([Node("in", "Foo"), Node("a", "Foo", ["in", "c"]), Node("b", "Foo", ["a"]), Node("c", "Foo", ["^b"])])
    with pytest.raises(InvalidArgument, match="cycle: a <- c <- b <- a"):
        topological_order(graph)
    with pytest.raises(InvalidArgument, match="cycle"):
        verify(graph)


def test_consumers_are_listed_once_and_in_order() -> None:
    graph = Graph([Node("a", "Foo"), Node("b", "Foo", ["a", "a:1"]), Node("c", "Foo", ["b", "^a"])])
    assert {k: [n.name for n in v] for k, v in consumers(graph.nodes).items()} == {"a": ["b", "c"], "b": ["c"], "c": []}


@QUICK
@given(st.lists(st.lists(st.integers(0, 30), max_size=3), max_size=30), st.randoms(use_true_random=False))
def test_any_acyclic_graph_is_sorted(edges: list[list[int]], random: Any) -> None:
    nodes = [Node(f"n{i}", "Foo", [f"n{j}" for j in sources if j < i]) for i, sources in enumerate(edges)]
    random.shuffle(nodes)
    order = topological_order(Graph(nodes))
    position = {node.name: i for i, node in enumerate(order)}
    assert len(order) == len(nodes)
    assert all(position[i.node] < position[n.name] for n in nodes for i in n.inputs)
    verify(Graph(nodes))


BAD = [
    ([Node("a", "Foo", ["b"])], "'b' does not exist", "a"),
    ([Node("input", "Foo"), Node("a", "Foo", ["inptu"])], "did you mean 'input'", "a"),
    ([Node("a", "Foo", ["^b"])], "'b' does not exist", "a"),
    ([Node("a", "Foo", ["a"])], "takes itself", "a"),
    ([Node("a", "Foo", ["^a"])], "takes itself", "a"),
    ([Node("", "Foo")], "has no name", ""),
    ([Node("a", "")], "has no op", "a"),
    ([Node("a b", "Foo")], "'a b' is not a node's name", "a b"),
    ([Node("a:0", "Foo")], "is not a node's name", "a:0"),
    ([Node("-a", "Foo")], "is not a node's name", "-a"),
    ([Node("a", "Foo"), Node("b", "Foo", ["a:out:0"])], "port that is not a number", "b"),
    ([Node("a", "Foo", ["b"]), Node("b", "Foo", ["a"])], "cycle", "a"),
]


@pytest.mark.parametrize(("nodes", "says", "name"), BAD, ids=[says for _, says, _ in BAD])
def test_the_verifier_names_the_node(nodes: list[Node], says: str, name: str) -> None:
    with pytest.raises(InvalidArgument, match=says) as caught:
        verify(Graph(nodes))
    assert caught.value.node == name


@pytest.mark.parametrize("name", ["a", "A.b-c/d_e", "0", ".x", "_arg_0", "ns>op", "a/b>c/d"])
def test_names_that_tensorflow_takes_pass(name: str) -> None:
    verify(Graph([Node(name, "Foo")]))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (function([Node("add", "AddV2", ["b", "a"])]), "'b' does not exist"),
        (function([Node("add", "AddV2"), Node("a", "Foo")]), "the same name"),
        (function([]), "output 'y' is 'add', which is neither a node nor an argument"),
        (Function("f", [], [ArgDef("y")]), "output 'y' has no value"),
        (Function("f", [ArgDef("a"), ArgDef("a")]), "two arguments"),
        (function([Node("add", "Foo", ["x:z:0"]), Node("x", "Foo", ["add:z:0"])]), "cycle"),
    ],
)
def test_the_verifier_looks_into_functions(bad: Function, says: str) -> None:
    with pytest.raises(InvalidArgument, match=f"function 'f': .*{says}"):
        verify(Graph([], [bad]))
