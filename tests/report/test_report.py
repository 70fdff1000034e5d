"""heald report: pictures of scopes, the data of a page, and the page as text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.api import Func
from heald.cli import main
from heald.graphs.graph.function import Function
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.contract.op import ArgDef
from heald_report.layout import layered_layout
from heald_report.node_table import MOST_NAME_CHARACTERS, shown_text, without_folders
from heald_report.page import json_text, page_bytes, page_data
from heald_report.pictures import BACKWARDS, CROSSING, MOST_BOXES, NODE, SCOPE
from heald_report.scopes import MOST_MEMBERS, scope_tree
from heald_report.svg import model_svg

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "frozen.pb"


def load(tmp_path: Path, graph: Graph, *outputs: str) -> heald.Model:
    file = tmp_path / "model.pb"
    heald.graphdef.dump(graph, file)
    return heald.load(file, outputs=list(outputs) or None)


def boxes_of(data, picture):
    return {box[1]: box for box in data["pictures"][picture][5]}


def test_members_of_scopes_are_nodes_and_scopes_by_label():
    tree = scope_tree(["a/b/c", "a/b/d", "a", "e/f/g/h"])
    assert list(tree.members) == ["a/b/", "a", "e/f/g/h"]
    assert list(tree.members["a/b/"].nodes()) == ["a/b/c", "a/b/d"]


@pytest.mark.parametrize("names", [
    [f"n{number}" for number in range(MOST_MEMBERS * MOST_MEMBERS + 5)],
    ["/".join("x" * 3000), "/" * 500, "a//b", "//"],
    [f"s{number}/n{number % 7}" for number in range(3 * MOST_MEMBERS)]])
def test_every_scope_has_a_bounded_number_of_members_and_every_node_is_in_one(names):
    scopes, nodes = [scope_tree(names)], []
    for scope in scopes:
        assert len(scope.members) <= MOST_MEMBERS
        scopes += [member for member in scope.members.values() if not isinstance(member, str)]
        nodes += [member for member in scope.members.values() if isinstance(member, str)]
    assert sorted(nodes) == sorted(names)


@pytest.mark.parametrize("seed", range(24))
def test_boxes_of_a_layout_never_overlap_and_edges_lead_down(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 60))
    sizes = [(float(random.integers(20, 200)), float(random.integers(20, 90))) for _ in range(count)]
    edges = sorted({tuple(sorted(map(int, random.choice(count, 2, replace=False)))) for _ in range(count)})
    layout = layered_layout(sizes, edges)
    places = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(layout.corners, sizes, strict=True)]
    for index, (left, top, right, bottom) in enumerate(places):
        assert left >= 0
        assert top >= 0
        assert right <= layout.width
        assert bottom <= layout.height
        assert not [1 for l2, t2, r2, b2 in places[index + 1:] if left < r2 and l2 < right and top < b2 and t2 < bottom]
    assert all(places[a][3] <= places[b][1] for a, b in edges)


def test_a_layout_without_edges_and_without_boxes_is_made():
    assert layered_layout([], []).corners == []
    assert len(layered_layout([(10.0, 10.0)] * 3, []).corners) == 3


def test_a_constant_is_part_of_its_only_consumer(tmp_path):
    model = load(tmp_path, Graph([placeholder("x", (2,)), const("layer/c", [1, 2]),
                                  node("layer/y", "AddV2", "x", "layer/c"), node("layer/z", "Neg", "layer/y"),
                                  const("shared", [3, 4]),
                                  node("p", "AddV2", "layer/z", "shared"), node("q", "AddV2", "p", "shared")]), "q")
    data = page_data(model, None)
    names = data["nodes"]["name"]
    root = boxes_of(data, data["root"])
    assert {"x", "layer", "shared", "p", "q"} == set(root)
    inside = boxes_of(data, root["layer"][2])
    assert [names[number] for number in inside["y"][7]] == ["layer/c"]
    assert data["places"][names.index("layer/c")] == data["places"][names.index("layer/y")]


def test_the_back_edge_of_a_loop_is_marked(tmp_path):
    i32 = heald.api.dtypes.int32
    frame = {"T": i32, "frame_name": "f", "is_constant": False, "parallel_iterations": 10}
    model = load(tmp_path, Graph([
        const("zero", 0, np.int32), const("ten", 10, np.int32), const("one", 1, np.int32),
        Node("w/enter", "Enter", ["zero"], attrs=frame),
        Node("w/limit", "Enter", ["ten"], attrs=frame | {"is_constant": True}),
        Node("w/step", "Enter", ["one"], attrs=frame | {"is_constant": True}),
        Node("w/merge", "Merge", ["w/enter", "w/next"], attrs={"T": i32, "N": 2}),
        Node("w/less", "Less", ["w/merge", "w/limit"], attrs={"T": i32}), Node("w/cond", "LoopCond", ["w/less"]),
        Node("w/switch", "Switch", ["w/merge", "w/cond"], attrs={"T": i32}),
        Node("w/add", "AddV2", ["w/switch:1", "w/step"], attrs={"T": i32}),
        Node("w/next", "NextIteration", ["w/add"], attrs={"T": i32}),
        Node("w/exit", "Exit", ["w/switch"], attrs={"T": i32}),
        Node("y", "Identity", ["w/exit"], attrs={"T": i32})]), "y")
    data = page_data(model, None)
    picture = data["pictures"][boxes_of(data, data["root"])["w"][2]]
    labels = [box[1] for box in picture[5]]
    assert [(labels[a], labels[b]) for a, b, _, flags, *_ in picture[6] if flags & BACKWARDS] == [("next", "merge")]


def recursive(name: str, callee: str) -> Function:
    f32 = heald.api.dtypes.float32
    return Function(name, [ArgDef("x", f32)], [ArgDef("y", f32)], [
        Node("call", "PartitionedCall", ["x"], attrs={"Tin": [f32], "Tout": [f32], "f": Func(callee)})],
        {"y": "call:output:0"})


def test_bodies_of_functions_are_inside_the_nodes_that_call_them(tmp_path):
    f32 = heald.api.dtypes.float32
    body = Function("double", [ArgDef("x", f32)], [ArgDef("y", f32)],
                    [Node("sum", "AddV2", ["x", "x"], attrs={"T": f32})], {"y": "sum:z:0"})
    call = Node("call", "PartitionedCall", ["x"], attrs={"Tin": [f32], "Tout": [f32], "f": Func("double")})
    data = page_data(load(tmp_path, Graph([placeholder("x", (2,)), call], [body]), "call"), None)
    (inner, left, top), = boxes_of(data, data["root"])["call"][8]
    assert data["pictures"][inner][1] == "double"
    assert "sum" in boxes_of(data, inner)
    number = data["nodes"]["name"].index("call")
    assert data["calls"][number] == [inner]
    assert (left, top) > (0, 0)


def test_copies_between_memories_are_edges_of_their_own():
    from heald_report.node_table import NodeTable, bodies_of
    from heald_report.pictures import Gallery

    names = {"a/p": -1, "a/q": -1, "b/r": -1, "b/s": 3, "b/t": 3, "c": 3, "waits": -1}
    graph = Graph([node("a/p", "Neg", "a/q"), placeholder("a/q", (2,)), node("b/r", "Neg", "a/p"),
                   node("b/s", "Neg", "a/p"), node("b/t", "AddV2", "a/q", "b/r"), node("c", "Neg", "b/t"),
                   Node("waits", "NoOp", controls=("c",))])
    table = NodeTable(bodies_of(graph))
    gallery = Gallery(table, [names[name] for _, name in table.numbers])
    root = gallery.pictures[gallery.root]
    labels = [box.label for box in root.boxes]
    edges = [(labels[edge.start], labels[edge.end], edge.tensors, bool(edge.flags & CROSSING), edge.copies)
             for edge in root.edges]
    assert sorted(edges) == [("a", "b", 1, False, ()), ("a", "b", 2, True, ((-1, 3),)), ("b", "c", 1, False, ()),
                             ("c", "waits", 1, False, ())]


def test_functions_that_call_each_other_are_drawn_once():
    from heald_report.node_table import NodeTable, bodies_of
    from heald_report.pictures import Gallery

    graph = Graph([recursive("f", "g").nodes["call"]], [recursive("f", "g"), recursive("g", "f")])
    table = NodeTable(bodies_of(graph))
    gallery = Gallery(table, [0] * len(table.numbers))
    assert sorted(picture.function for picture in gallery.pictures) == ["", "f", "g"]


def test_a_large_graph_has_bounded_pictures_and_a_bounded_page(tmp_path):
    nodes = [placeholder("x", (2,))]
    for number in range(3000):
        nodes.append(node(f"block{number // 50}/n{number}", "Neg", nodes[-1].name))
    content = page_bytes(load(tmp_path, Graph(nodes), nodes[-1].name), "large", None)
    data = json.loads(re.search(rb'id="data">(.*?)</script>', content, re.DOTALL)[1])
    assert max(len(picture[5]) for picture in data["pictures"]) <= MOST_BOXES
    assert len(content) < 3000 * 700
    kinds = {box[0] for picture in data["pictures"] for box in picture[5]}
    assert {NODE, SCOPE} <= kinds


def test_a_text_is_cut_and_a_path_of_the_machine_left_out():
    assert len(shown_text("x" * 100_000)) == MOST_NAME_CHARACTERS + 1
    assert without_folders("no driver: /usr/lib/x/libOpenCL.so is missing") == "no driver: libOpenCL.so is missing"
    assert without_folders(r"C:\Users\me\lib.dll is old") == "lib.dll is old"
    assert without_folders("a/b/c and 3/4 stay") == "a/b/c and 3/4 stay"


def test_json_in_a_script_has_no_markup():
    text = json_text(["</script><!--", "\u2028", "&amp;"])
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == ["</script><!--", "\u2028", "&amp;"]


def test_the_command_writes_one_page_without_weights_and_paths(tmp_path, capsys):
    page = tmp_path / "report.html"
    assert main(["report", str(DIGITS), "-o", str(page)]) == 0
    assert "written" in capsys.readouterr().out
    text = page.read_text("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["run"]["calls"]
    memory, = data["run"]["memory"]
    assert memory["peak"] > 0
    roof = data["run"]["roofline"]
    assert roof["gflops"] > 0
    assert (roof["devices"], roof["others"]) == (["CPU:0"], [])
    assert re.fullmatch(r"(NumPy|heald on CPU:0), of \d+ x \d+ matrices", roof["product"])
    products = [call for call in data["run"]["calls"] if call[10][0]]
    assert max(flops for *_, (flops, _), _ in products) > 10_000
    assert all(nbytes > 0 for *_, (_, nbytes), _ in products)
    assert str(ROOT) not in text
    assert not re.search(r"""(?:src|href)=["'](?!#)""", text)
    assert "default-src 'none'" in text.replace("&#39;", "'")
    assert len(text) < 300_000


@pytest.mark.parametrize(("arguments", "message"), [
    ([str(DIGITS), "-o", "page.pb"], "is no .html file, and no .svg"),
    ([str(DIGITS), "-o", "no/such/folder/page.html", "--no-run"], "no/such/folder"),
    ([str(DIGITS), "-o", "page.html", "--input", "nothing=3"], "no input 'nothing'"),
    ([str(DIGITS), "-o", "page.html", "--device", "NOWHERE:0"], "NOWHERE")])
def test_wrong_arguments_are_typed_errors(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_compiled_model_has_the_page_of_its_program_and_no_view(tmp_path, capsys):
    assert main(["compile", str(DIGITS), "-o", str(tmp_path / "d.bef"), "--input", "image:1,8,8,1"]) == 0
    assert main(["report", str(tmp_path / "d.bef"), "-o", str(tmp_path / "d.html")]) == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', (tmp_path / "d.html").read_text("utf-8"), re.DOTALL)[1])
    assert {call[2] for function in data["functions"] for call in function["calls"]} <= {"CPU:0", "host"}
    assert main(["view", str(tmp_path / "d.bef")]) == 1
    assert "needs a graph" in capsys.readouterr().err


def test_a_model_that_does_not_run_has_a_page_without_a_run(tmp_path, capsys):
    model = Graph([placeholder("x", (2,)), Node("y", "NoSuchOp", ["x"]), node("z", "Neg", "x")])
    heald.graphdef.dump(model, tmp_path / "m.pb")
    page = tmp_path / "m.html"
    assert main(["report", str(tmp_path / "m.pb"), "-o", str(page), "--no-run"]) == 0
    assert 'data-tab="timeline"' not in page.read_text("utf-8")


def texts_of_svg(text):
    return {element.text for element in ElementTree.fromstring(text).iter()}  # noqa: S314 - our own picture


@pytest.mark.parametrize("arguments", [["report", str(DIGITS), "-o"], ["explain", str(DIGITS), "--svg"]])
def test_a_picture_alone_is_a_whole_svg(arguments, tmp_path):
    file = tmp_path / "graph.svg"
    assert main([*arguments, str(file)]) == 0
    texts = texts_of_svg(file.read_text("utf-8"))
    assert {"conv2d_1", "re_lu_1/Relu6", "from image"} <= texts


def test_a_picture_of_another_suffix_and_without_the_plugin_is_a_typed_error(tmp_path, capsys, monkeypatch):
    assert main(["explain", str(DIGITS), "--svg", str(tmp_path / "graph.png")]) == 1
    assert "is no .svg file" in capsys.readouterr().err
    command = [sys.executable, "-m", "heald", "explain", str(DIGITS), "--svg", "graph.svg"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False,
                          env=os.environ | {"HEALD_PLUGINS__BLOCK": "report"})
    assert done.returncode == 1
    assert "no plugin in use brings" in done.stderr


def test_an_svg_has_the_hostile_names_as_text():
    names = ["<script>x</script>", "a&b", "\"'><g", "]]>"]
    model = SimpleNamespace(graph=Graph([placeholder("x", (2,)), *(node(name, "Neg", "x") for name in names)]),
                            placement=dict)
    assert set(names) <= texts_of_svg(model_svg(model))
