"""GraphDef files: bytes come back as they were, text is the same message, and anything else is a typed error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from heald.errors import DataLoss, HealdError, InvalidArgument, NotFound, PermissionDenied
from heald.graphs.graph.attr_value import put_entry
from heald.graphs.graph.graph import Function, Graph, Node, Versions
from heald.graphs.graph.graphdef import dump, dumps, load, loads
from heald.graphs.graph.node import ATTR, INPUT, NAME, OP
from heald.graphs.protobuf.descriptor_pool import message_class
from heald.runtime.values import dtypes, wire
from hypothesis import given, settings
from hypothesis import strategies as st

QUICK = settings(max_examples=40)
FILES = sorted((Path(__file__).parents[2] / "data" / "graphs").glob("*.pb"))
SMALL = next(f for f in FILES if f.stem == "v2_case")


def proto(raw: bytes) -> Any:
    return message_class("GraphDef").FromString(raw)


def rewrite_all_fields(node: Node) -> Node:
    """The same node, every field written anew."""
    return node.replace(name=node.name, op=node.op, inputs=node.inputs, device=node.device, attrs=node.attrs)


def rebuild_function(function: Function) -> Function:
    return function.replace(
        name=function.name, inputs=function.inputs, outputs=function.outputs, ret=function.ret,
        control_ret=function.control_ret, attrs=function.attrs, stateful=function.stateful,
        nodes=map(rewrite_all_fields, function.nodes.values()),
    )


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_file_comes_back_byte_for_byte(file: Path, tmp_path: Path) -> None:
    graph = load(file)
    assert dumps(graph) == file.read_bytes()
    dump(graph, tmp_path / "again.pb")
    assert (tmp_path / "again.pb").read_bytes() == file.read_bytes()
    shuffled = graph.replace(nodes=list(graph)[:2], functions=list(graph.functions.values()))
    assert dumps(shuffled) == file.read_bytes()


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_written_anew_it_is_the_same_message(file: Path) -> None:
    graph = load(file)
    new = graph.replace(
        nodes=map(rewrite_all_fields, graph), functions=map(rebuild_function, graph.functions.values()),
        versions=graph.versions
    )
    assert proto(dumps(new)) == proto(file.read_bytes())


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_text_is_the_same_message(file: Path, tmp_path: Path) -> None:
    dump(load(file), tmp_path / "graph.pbtxt")
    text = (tmp_path / "graph.pbtxt").read_text()
    assert text_format.Parse(text, message_class("GraphDef")()) == proto(file.read_bytes())
    again = load(tmp_path / "graph.pbtxt")
    assert proto(dumps(again)) == proto(file.read_bytes())


def test_constants_of_a_loaded_file_are_views_of_it() -> None:
    graph = load(next(f for f in FILES if f.stem == "keras_tiny_cnn"))
    arrays = [n.attrs["value"].array() for n in graph if n.op == "Const" and n.attrs["value"].nbytes > 64]
    assert arrays
    assert not any(a.flags.owndata or a.flags.writeable for a in arrays)


def test_fields_around_the_nodes_stay_where_they_are() -> None:
    versions, library = wire.put_bytes(4, b"\x08\x07"), wire.put_bytes(2, wire.put_bytes(2, "gradient"))
    node = wire.put_bytes(1, Node("a", "Foo").raw)
    raw = versions + node + wire.put_integer(3, 21) + library + wire.put_bytes(99, "?")
    graph = loads(raw)
    new = graph.replace(nodes=[Node("b", "Foo")])
    added = wire.put_bytes(1, Node("b", "Foo").raw)
    assert dumps(new) == raw.replace(node, node + added)
    newer = graph.replace(versions=Versions(8), functions=[Function("f")])
    function = wire.put_bytes(1, Function("f").raw)
    expected = raw.replace(versions, wire.put_bytes(4, b"\x08\x08"))
    assert dumps(newer) == expected.replace(library, wire.put_bytes(2, function + wire.put_bytes(2, "gradient")))


def test_concatenated_files_merge() -> None:
    one = dumps(Graph([Node("a", "Foo")], [Function("f")], Versions(5, 1)))
    two = dumps(Graph([Node("b", "Foo", ["a"])], [Function("g")], Versions(7)))
    graph = loads(one + two)
    assert (list(graph.nodes), list(graph.functions), graph.versions) == (["a", "b"], ["f", "g"], Versions(7, 1))
    assert dumps(graph) == one + two
    assert proto(dumps(graph.replace(versions=graph.versions, functions=graph.functions))) == proto(one + two)


def test_a_buffer_that_may_change_is_copied() -> None:
    data = bytearray(dumps(Graph([Node("a", "Foo")])))
    graph = loads(data)
    data[:] = b"\0" * len(data)
    assert graph["a"].op == "Foo"
    assert loads(memoryview(b"x" + dumps(graph))[1:])["a"].op == "Foo"


def test_truncation_at_every_byte_gives_a_typed_error_or_a_shorter_graph() -> None:
    raw = SMALL.read_bytes()
    all_names = list(load(SMALL).nodes)
    shorter = 0
    for end in range(len(raw)):
        try:
            graph = loads(raw[:end])
        except HealdError as error:
            assert isinstance(error, DataLoss | InvalidArgument)  # noqa: PT017
        else:
            shorter += 1
            assert list(graph.nodes) == all_names[: len(graph)]
    assert shorter < len(all_names) + 4


@QUICK
@given(st.data())
def test_damage_gives_a_typed_error_or_a_graph(data: st.DataObject) -> None:
    raw = bytearray(SMALL.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
        raw[at] = data.draw(st.integers(0, 255))
    try:
        graph = loads(bytes(raw))
    except HealdError:
        return
    assert dumps(graph) == bytes(raw)


def test_errors_name_the_byte_in_the_file(tmp_path: Path) -> None:
    good = wire.put_bytes(1, Node("a", "Foo").raw)
    (tmp_path / "g.pb").write_bytes(good + wire.put_bytes(1, wire.put_bytes(1, "b") + b"\x1a\x7fxx"))
    with pytest.raises(DataLoss, match=rf"g.pb: truncated: the field at byte {len(good) + 5} ") as caught:
        load(tmp_path / "g.pb")
    assert caught.value.node == "b"


TENSOR = 'node {{ name: "c" op: "Const" attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT {} }} }} }} }}'
BAD = [
    ('node { name: "a" op: "F" } node { name: "a" op: "F" }', "two nodes are called 'a'", "a"),
    ('node { name: "a" op: "F" input: "b" } node { name: "b" op: "F" input: "a" }', "cycle", "a"),
    ('node { name: "a" op: "F" input: "a" }', "takes itself", "a"),
    ('node { name: "a" op: "F" input: "^a" }', "takes itself", "a"),
    ('node { name: "a" op: "F" input: "x" }', "'x' does not exist", "a"),
    ('node { name: "x" op: "F" } node { name: "a" op: "F" input: "x:100000000000000000000" }', "beyond 2", "a"),
    ('node { name: "x" op: "F" } node { name: "a" op: "F" input: "x:-1" }', "an invalid port", "a"),
    ('node { name: "x" op: "F" } node { name: "a" op: "F" input: "x:y" }', "port that is not a number", "a"),
    ('node { op: "F" }', "has no name", ""),
    ('node { name: "x" op: "F" } node { name: "a" op: "F" input: "^x" input: "x" }', "after a control", "a"),
    ('node { name: "a" op: "F" attr { key: "T" value { type: 999 } } }', "attribute 'T': 999", "a"),
    (TENSOR.format("tensor_shape { dim { size: 1152921504606846976 } }"), "larger than any memory", "c"),
    (TENSOR.format("tensor_shape { dim { size: -5 } }"), "-5", "c"),
    (TENSOR.format("tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } }"), "overflows", "c"),
    (TENSOR.format("tensor_shape { " + "dim { size: 1 } " * 300 + "}"), "300 dimensions", "c"),
    (TENSOR.format('tensor_shape { dim { size: 2 } } tensor_content: "1234567"'), "7 bytes", "c"),
    ('library { function { signature { name: "f" } node_def { name: "a" op: "F" input: "x" } } }', "function 'f'", "a"),
    ('library { function { signature { name: "f" } node_def { name: "a" op: "F" input: "x:-1" } } }',
     "an invalid port", "a"),
    ('library { function { } }', "no name", None),
]


@pytest.mark.parametrize(("text", "says", "node"), BAD, ids=[says for _, says, _ in BAD])
def test_bad_graphs_are_refused_by_name(text: str, says: str, node: str | None) -> None:
    raw = text_format.Parse(text, message_class("GraphDef")()).SerializeToString()
    with pytest.raises(InvalidArgument, match=says) as caught:
        loads(raw)
    assert caught.value.node == node
    with pytest.raises(InvalidArgument, match=says):
        loads(text, text=True)


def test_a_splat_of_a_thousand_million_elements_loads() -> None:
    graph = loads(TENSOR.format("tensor_shape { dim { size: 1000000000 } } float_val: 1"), text=True)
    assert graph["c"].attrs["value"].nbytes == 4 * 10**9


@pytest.mark.parametrize("levels", [34, 1000])
def test_attributes_nested_too_deep_are_refused(levels: int) -> None:
    value = b""
    for _ in range(levels):
        value = wire.put_bytes(10, wire.put_bytes(2, wire.put_bytes(2, value)))
    entry = wire.put_bytes(1, "f") + wire.put_bytes(2, value)
    node = wire.put_bytes(1, "a") + wire.put_bytes(2, "F") + wire.put_bytes(5, entry)
    with pytest.raises(InvalidArgument, match="nesting") as caught:
        loads(wire.put_bytes(1, node))
    assert caught.value.node == "a"


def test_text_nested_too_deep_is_refused() -> None:
    text = 'node { name: "a" attr { key: "f" value ' + "{ func { attr { value " * 1000 + "{}" + "} } }" * 1000 + "} }"
    with pytest.raises(InvalidArgument, match="nesting"):
        loads(text, text=True)
    with pytest.raises(InvalidArgument, match="nesting"):
        loads("node { attr { value " + "{ func { attr { value " * 3000, text=True)
    loads('node { name: "a" op: "F" device: "' + "{" * 300 + '" } # ' + "{" * 300, text=True)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('node {\n  name: "a"\n  opp: "F"\n}', 3, 'no field named "opp"'),
        ("node {\n  name: 5\n}", 2, "string"),
        ('node { name: "a" }\nnode {', 2, ""),
        ('node { name: "a" } }', 1, ""),
        ("versions { producer: 99999999999 }", 1, "out of range"),
        ('node { name: "a" attr { key: "T" value { type: DT_FLOTA } } }', 1, "DT_FLOTA"),
        ('\n\nnode { name: "\\377" }', 3, ""),
        ('\n\nnode { name: "\\8" }', 3, "escape"),
        ('\n\nnode { name: "a', 3, "has no end"),
    ],
)
def test_text_errors_name_the_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    (tmp_path / "g.pbtxt").write_text(text)
    with pytest.raises(InvalidArgument, match=says or None) as caught:
        load(tmp_path / "g.pbtxt")
    assert caught.value.location is not None
    assert caught.value.location.file == str(tmp_path / "g.pbtxt")
    assert caught.value.location.line == line


@QUICK
@given(st.text(st.sampled_from('node{}[]<>:",;# \n-\\0189aDT_FLOATinfkeyvalue\'\x00é'), max_size=40))
def test_any_text_is_a_graph_or_a_typed_error(text: str) -> None:
    for full_text in (text, "node { " + text + " }", 'node { name: "a" op: "' + text + '" }'):
        try:
            loads(full_text, text=True)
        except HealdError:
            continue


def test_a_field_that_text_cannot_express_is_named() -> None:
    graph = loads(wire.put_bytes(1, Node("a", "Foo", extra=wire.put_bytes(99, "?")).raw))
    with pytest.raises(InvalidArgument, match="unknown") as caught:
        dumps(graph, text=True)
    assert caught.value.node == "a"
    assert "binary" in str(caught.value)


FOREIGN = {
    "image.pb": (b"\x89PNG\r\n\x1a\n" + bytes(20), DataLoss, "a PNG image"),
    "archive.pb": (b"PK\x03\x04" + bytes(20), DataLoss, "a zip archive"),
    "empty.pb": (b"", DataLoss, "empty"),
    "text.pb": (b'node {\n  name: "a"\n}\n', DataLoss, "text=True"),
    "noise.pb": (bytes(range(255, 200, -1)), DataLoss, "noise.pb"),
    "other.pb": (wire.put_bytes(90, "x") * 3, DataLoss, "no node"),
    "saved_model.pb": (wire.put_integer(1, 1) + wire.put_bytes(2, b"\x12\x00"), InvalidArgument, "heald.load"),
    "model.pb": (wire.put_integer(1, 8) + wire.put_bytes(2, "pytorch"), DataLoss, "ONNX"),
    "binary.pbtxt": (b"\x0a\x05\x0a\x01\xff\x12\x00", InvalidArgument, "text=False"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_named_with_the_way_out(tmp_path: Path, name: str) -> None:
    data, kind, says = FOREIGN[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(kind, match=says) as caught:
        load(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_paths_that_hold_no_file_are_typed_errors(tmp_path: Path) -> None:
    (tmp_path / "graph.pb").touch()
    with pytest.raises(NotFound, match=r"did you mean 'graph\.pb'"):
        load(tmp_path / "grpah.pb")
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(InvalidArgument, match=r"a folder.*heald\.load"):
        load(tmp_path)
    for path in ("a\0b", "x" * 5000, "", "graph.pb/inner"):
        with pytest.raises(HealdError):
            load(tmp_path / path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pb")
    with pytest.raises(InvalidArgument, match="not a regular file"):
        load(tmp_path / "pipe.pb")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "g.pb").write_bytes(SMALL.read_bytes())
    (tmp_path / "g.pb").chmod(0)
    with pytest.raises(PermissionDenied, match=r"g\.pb"):
        load(tmp_path / "g.pb")


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    graph = load(SMALL)
    target = tmp_path / "graph.pb"
    target.write_bytes(b"old")
    dump(graph, target)
    assert target.read_bytes() == SMALL.read_bytes()
    (tmp_path / "folder").mkdir()
    with pytest.raises(HealdError, match="folder"):
        dump(graph, tmp_path / "folder")
    with pytest.raises(NotFound):
        dump(graph, tmp_path / "missing" / "graph.pb")
    with pytest.raises(InvalidArgument):
        dump(graph, tmp_path / "a\0b.pb")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "graph.pb"]


def test_a_loaded_graph_outlives_the_replacement_of_its_file(tmp_path: Path) -> None:
    target = tmp_path / "graph.pb"
    target.write_bytes(SMALL.read_bytes())
    graph = load(target)
    dump(graph.replace(nodes=[Node("added", "NoOp")]), target)
    assert dumps(graph) == SMALL.read_bytes()
    assert "added" in load(target)


def test_binary_and_text_are_told_apart() -> None:
    with pytest.raises(InvalidArgument, match="text=True"):
        loads("node {}")
    assert not loads(b"").nodes
    assert dumps(Graph()) == b""


def test_reading_a_binary_file_imports_neither_numpy_nor_protobuf() -> None:
    code = "import sys, heald\ng = heald.graphdef.load(sys.argv[1])\nheald.graphdef.dumps(g)\n" \
           "g.replace(nodes=[next(iter(g)).replace(device='x')])\n" \
           "sys.exit([m for m in sys.modules if m.split('.')[0] in ('numpy', 'google')] or None)"
    subprocess.run([sys.executable, "-c", code, str(SMALL)], check=True)


def test_tensorflows_messages_stay_out_of_the_pool_that_tensorflow_itself_uses():
    from google.protobuf import descriptor_pool

    dumps(Graph([Node("n", "NoOp")]), text=True)
    for name in ("GraphDef", "NodeDef", "AttrValue"):
        with pytest.raises(KeyError):
            descriptor_pool.Default().FindMessageTypeByName(f"tensorflow.{name}")


def test_attributes_that_nodes_share_hide_nothing_that_follows_them() -> None:
    entry = wire.put_bytes(ATTR, put_entry("T", dtypes.float32))
    first = wire.put_bytes(NAME, "x") + wire.put_bytes(OP, "Placeholder") + entry
    turned = wire.put_bytes(NAME, "y") + wire.put_bytes(OP, "Relu") + entry + wire.put_bytes(INPUT, "x")
    again = wire.put_bytes(NAME, "z") + wire.put_bytes(OP, "Relu") + entry + wire.put_bytes(INPUT, "y")
    same = wire.put_bytes(NAME, "a") + wire.put_bytes(OP, "NoOp") + entry
    graph = loads(b"".join(wire.put_bytes(1, node) for node in (first, turned, again, same)))
    assert [[str(source) for source in node.inputs] for node in graph] == [[], ["x"], ["y"], []]
    assert [node.attrs for node in graph] == [{"T": dtypes.float32}] * 4
    assert graph["a"].attrs is graph["x"].attrs


@pytest.mark.parametrize("size", [1, 5000])  # short messages of edited nodes are kept, long ones are not
def test_the_bytes_of_an_edited_node_do_not_depend_on_earlier_requests(size: int) -> None:
    def edit(node: Node, *, ask: bool) -> Node:
        for edits in ({"inputs": ["m"]}, {"inputs": ["n"]}, {"name": "b", "attrs": {"s": b"t" * size}}):
            node = node.replace(**edits)
            if ask:
                assert node.raw == node.raw
        return node

    raw = wire.put_bytes(NAME, "a") + wire.put_bytes(INPUT, "n:0") + wire.put_bytes(INPUT, "^c")
    asked, unasked = edit(Node.read(raw), ask=True), edit(Node.read(raw), ask=False)
    assert asked.raw == unasked.raw
    function, other = (Function("f", nodes=[node]).replace(name="g") for node in (asked, unasked))
    assert function.raw == function.raw == other.raw
    assert function.replace(name="h").raw == other.replace(name="h").raw != other.raw


ENTRY = wire.put_bytes(ATTR, put_entry("T", dtypes.float32))
NAMED = wire.put_bytes(NAME, "y") + wire.put_bytes(OP, "Relu")
SIMILAR = [
    NAMED, NAMED + ENTRY, ENTRY + NAMED, NAMED + ENTRY + NAMED, NAMED + wire.put_bytes(INPUT, "") + ENTRY, ENTRY,
    NAMED + wire.put_bytes(INPUT, "x:1") + wire.put_bytes(INPUT, "^x") + ENTRY,
    NAMED + wire.put_bytes(INPUT, "^x") + wire.put_bytes(INPUT, "x") + ENTRY,
    NAMED + wire.put_bytes(INPUT, "x:-1") + ENTRY, NAMED + wire.put_bytes(4, "/device:CPU:0") + ENTRY,
    NAMED + wire.put_bytes(NAME, "z") + wire.put_bytes(OP, "") + ENTRY, NAMED + wire.put_bytes(9, "unknown") + ENTRY,
    NAMED + wire.put_bytes(INPUT, "x" * 127) + ENTRY, NAMED + wire.put_bytes(INPUT, "x" * 128) + ENTRY,
    NAMED + wire.put_bytes(INPUT, "x" * 300) + ENTRY, NAMED + wire.put_bytes(INPUT, "\u00fc") + ENTRY,
    NAMED + wire.put_bytes(INPUT, b"\xff") + ENTRY, NAMED + b"\x1a\x7fxx", NAMED + b"\x1a\x82\x00xx" + ENTRY,
    NAMED + b"\x1a", NAMED + b"\x08\x01" + ENTRY, NAMED + b"\x00" + ENTRY, NAMED + ENTRY[:-1],
    NAMED + ENTRY + wire.put_bytes(6, "debug info"), NAMED + ENTRY + ENTRY, b"",
]


@pytest.mark.parametrize("message", SIMILAR)
def test_a_node_reads_alike_behind_one_with_its_attributes_and_behind_another(message: bytes) -> None:
    def read(key: str) -> Any:
        entry = wire.put_bytes(ATTR, put_entry(key, dtypes.float32))
        raw = b"".join(wire.put_bytes(1, node) for node in (
            wire.put_bytes(NAME, "x") + entry, wire.put_bytes(NAME, "w") + entry + wire.put_bytes(6, "debug info"),
            message))
        try:
            graph = loads(raw, verify=False)
        except HealdError as error:
            return type(error), error.message, error.node, error.op
        assert dumps(graph) == raw
        _, _, node = graph
        return node.name, node.op, node.inputs, node.controls, node.device, node.attrs, bytes(node.raw)

    assert read("T") == read("U")


@pytest.mark.parametrize(("name", "hint"), [
    ("saved_model.pb", "load its folder: heald.load('{folder}')"),
    ("other.pb", "put it into a folder of its own, under the name saved_model.pb, and load the folder"),
])
def test_a_saved_model_under_any_name_is_told_how_to_load_it(tmp_path, name, hint):
    (tmp_path / name).write_bytes(b"\x08\x01\x12\x02\x12\x00")
    with pytest.raises(InvalidArgument, match="this is a SavedModel, not a GraphDef") as caught:
        load(tmp_path / name)
    assert caught.value.hint == hint.format(folder=tmp_path)
