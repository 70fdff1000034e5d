"""Any graph: protobuf reads our GraphDefs, we read protobuf's, and edits keep the order."""

from __future__ import annotations

from typing import Any

import numpy as np
from heald.graphs.graph.graph import Func, Function, Graph, Node, ShapeAttr, Versions
from heald.graphs.graph.graphdef import dumps, loads
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.contract.op import ArgDef
from heald.runtime.values import dtypes, wire
from hypothesis import given, settings
from hypothesis import strategies as st

QUICK = settings(max_examples=40)


def proto(raw: bytes) -> Any:
    return message_class("GraphDef").FromString(raw)


NAMES = st.from_regex(r"[A-Za-z0-9._][A-Za-z0-9_./\-]{0,6}", fullmatch=True)
VALUES = st.recursive(
    st.one_of(
        st.binary(max_size=8), st.integers(-(2**63), 2**63 - 1), st.floats(width=32, allow_nan=False), st.booleans(),
        st.sampled_from(dtypes.ALL), st.none(),
        st.builds(ShapeAttr, st.lists(st.none() | st.integers(0, 9), max_size=3)),
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), st.lists(st.binary(max_size=3), max_size=3),
        st.lists(st.sampled_from(dtypes.ALL), max_size=3),
        st.builds(np.float32, st.lists(st.floats(width=32, allow_nan=False), max_size=4)),
    ),
    lambda inner: st.builds(Func, NAMES, st.dictionaries(NAMES, inner, max_size=2)), max_leaves=3,
)


@st.composite
def node_lists(draw: st.DrawFn, arguments: tuple[str, ...] = (), *, most_nodes: int = 6) -> list[Node]:
    names = draw(st.lists(NAMES, unique=True, max_size=most_nodes))
    nodes: list[Node] = []
    for name in (n for n in names if n not in arguments):
        sources = [*arguments, *(n.name for n in nodes)]
        port = st.sampled_from(["", ":0", ":1", ":3"]) if not arguments else st.sampled_from(["", ":out:0", ":out:2"])
        source = st.builds("".join, st.tuples(st.sampled_from(sources), port)) if sources else st.nothing()
        inputs = draw(st.lists(source, max_size=3)) if sources else []
        controls = draw(st.lists(st.sampled_from(sources), max_size=2)) if sources else []
        attrs = draw(st.dictionaries(NAMES, VALUES, max_size=3))
        device = draw(st.sampled_from(["", "/device:CPU:0"]))
        nodes.append(Node(name, draw(NAMES), inputs, controls=controls, device=device, attrs=attrs))
    return nodes


@st.composite
def functions(draw: st.DrawFn, name: str) -> Function:
    nodes = draw(node_lists(("arg",), most_nodes=3))
    return Function(name, [ArgDef("arg", dtypes.float32)], [ArgDef("y", type_attr="T")], nodes, {"y": "arg"},
                    attrs=draw(st.dictionaries(NAMES, VALUES, max_size=2)))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = draw(st.lists(NAMES, unique=True, max_size=2))
    bad = tuple(draw(st.lists(st.integers(0, 9), max_size=2)))
    versions = Versions(draw(st.integers(0, 3000)), draw(st.integers(0, 12)), bad)
    return Graph(draw(node_lists()), [draw(functions(n)) for n in names], versions)


UNKNOWN = st.builds(
    lambda number, value: wire.put_integer(number, value) if isinstance(value, int) else wire.put_bytes(number, value),
    st.integers(100, 5000), st.integers(0, 2**64 - 1) | st.binary(max_size=5),
)


def scramble_fields(message: Any, draw: Any) -> bytes:
    """A message with its fields in any order, where order means nothing, and with unknown fields in between."""
    field_groups = []
    for field, value in message.ListFields():
        one = type(message)()
        if field.name in ("node", "node_def"):
            field_groups.append([wire.put_bytes(field.number, scramble_fields(node, draw)) for node in value])
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            entries = []
            for key in value:
                one.Clear()
                if field.message_type.fields_by_name["value"].message_type is None:
                    getattr(one, field.name)[key] = value[key]
                else:
                    getattr(one, field.name)[key].CopyFrom(value[key])
                entries.append([one.SerializeToString()])
            field_groups += entries
        elif field.name == "input":
            field_groups.append([wire.put_bytes(field.number, text) for text in value])
        elif field.name == "library":
            inner = [wire.put_bytes(1, scramble_fields(function, draw)) for function in value.function]
            field_groups.append([wire.put_bytes(field.number, b"".join(inner))])
        else:
            one.Clear()
            one.CopyFrom(message)
            for other, _ in message.ListFields():
                if other.number != field.number:
                    one.ClearField(other.name)
            field_groups.append([one.SerializeToString()])
    field_groups += [[raw] for raw in draw(st.lists(UNKNOWN, max_size=1))]
    return b"".join(b"".join(group) for group in draw(st.permutations(field_groups)))


@QUICK
@given(graphs())
def test_graphs_made_here_are_what_protobuf_reads(graph: Graph) -> None:
    raw = dumps(graph)
    message = proto(raw)
    assert [n.name for n in message.node] == list(graph.nodes)
    assert [f.signature.name for f in message.library.function] == list(graph.functions)
    for node, node_message in zip(graph, message.node, strict=True):
        assert (node_message.op, node_message.device) == (node.op, node.device)
        assert list(node_message.input) == [*map(str, node.inputs), *(f"^{c}" for c in node.controls)]
        assert sorted(node_message.attr) == sorted(node.attrs)
    again = loads(raw)
    assert dumps(again) == raw
    for node, other in zip(graph, again, strict=True):
        assert node.attrs == other.attrs
    assert again.versions == graph.versions
    assert proto(dumps(loads(dumps(again, text=True), text=True))) == message


@QUICK
@given(graphs(), st.data())
def test_any_order_of_fields_and_any_unknown_field_survives(graph: Graph, data: st.DataObject) -> None:
    raw = scramble_fields(proto(dumps(graph)), data.draw)
    read_graph = loads(raw)
    assert dumps(read_graph) == raw
    assert list(read_graph.nodes) == list(graph.nodes)
    edited = data.draw(st.lists(st.sampled_from(list(read_graph.nodes)), unique=True)) if read_graph.nodes else []
    new = read_graph.replace(nodes=[read_graph[name].replace(device="/new", attrs={"_added": 5}) for name in edited])
    again = loads(dumps(new))
    for name, node in read_graph.nodes.items():
        if name in edited:
            assert again[name].device == "/new"
            assert again[name].attrs == {**node.attrs, "_added": 5}
            assert (again[name].inputs, again[name].controls) == (node.inputs, node.controls)
            assert again[name].extra == node.extra
        else:
            assert bytes(again[name].raw) == bytes(node.raw)
    assert [bytes(f.raw) for f in again.functions.values()] == [bytes(f.raw) for f in read_graph.functions.values()]
