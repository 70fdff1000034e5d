"""heald new ops --from MODEL OP: the signature comes from the model, and the package works until its kernel is written.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import heald
import pytest
from heald.api import Func, Graph, Node, OpSpec, ShapeAttr, dtypes, wire
from heald.graphs.graph.function import Function
from heald.runtime.contract.attribute_forms import check_attributes
from heald.runtime.contract.op import ArgDef
from heald.runtime.service.runtime import runtime
from heald_tools.new_ops import function_name, op_texts, package_files, spec_text
from heald_tools.op_signature import FoundOp, find_op, uses_of

DATA = Path(__file__).parents[1] / "data"
DIGITS = Path(__file__).parents[2] / "examples" / "digits"
F, INT = dtypes.float32, dtypes.int32


def feed(name: str, dtype: dtypes.DType = F) -> Node:
    return Node(name, "Placeholder", attrs={"dtype": dtype})


def use(op: str, inputs: list[str], name: str = "y", **attrs: object) -> Node:
    return Node(name, op, inputs, attrs=attrs)


def neg(source: str, name: str = "n", dtype: dtypes.DType = F) -> Node:
    return Node(name, "Neg", [source], attrs={"T": dtype})


ROWS = {  # the nodes of a model, and the declaration of their op Acme>X
    "a type attribute": ([feed("a"), use("Acme>X", ["a"], T=F), neg("y")], ["x: T"], ["y: T"], ["T: type"]),
    "a fixed type beside a type attribute": (
        [feed("a"), feed("i", INT), use("Acme>X", ["a", "i"], T=F), neg("y")],
        ["x0: T", "x1: int32"], ["y: T"], ["T: type"]),
    "no attribute": ([feed("a"), use("Acme>X", ["a"]), neg("y")], ["x: float"], ["y: float"], []),
    "an attribute that the output alone has": (
        [feed("i", INT), use("Acme>X", ["i"], T=INT, Tout=F), neg("y")],
        ["x: T"], ["y: Tout"], ["T: type", "Tout: type"]),
    "a number of inputs": (
        [feed("a"), use("Acme>X", ["a", "a", "a"], N=3, T=F), use("Acme>X", ["a"], "z", N=1, T=F), neg("y")],
        ["inputs: N * T"], ["y: T"], ["N: int", "T: type"]),
    "lists of types": (
        [feed("a"), feed("i", INT), use("Acme>X", ["a", "i"], Tin=(F, INT), Tout=(INT, F)), neg("y:1")],
        ["inputs: Tin"], ["outputs: Tout"], ["Tin: list(type)", "Tout: list(type)"]),
    "each kind of attribute": (
        [feed("a"), use("Acme>X", ["a"], a=b"x", b=True, c=3, d=1.5, e=ShapeAttr((1, None)), f=(1, 2), g=Func("f")),
         neg("y")],
        ["x: float"], ["y: float"],
        ["a: string", "b: bool", "c: int", "d: float", "e: shape", "f: list(int)", "g: func"]),
    "a float that one node has as an int": (
        [feed("a"), use("Acme>X", ["a"], c=1), use("Acme>X", ["a"], "z", c=1.5), neg("y")],
        ["x: float"], ["y: float"], ["c: float"]),
    "an attribute that some nodes lack": (
        [feed("a"), use("Acme>X", ["a"], c=4), use("Acme>X", ["a"], "z"), neg("y")],
        ["x: float"], ["y: float"], ["c: int = 4"]),
    "three results, of which the last is used": (
        [feed("a"), use("Acme>X", ["a"], T=F), neg("y:2")], ["x: T"], ["y0: T", "y1: T", "y2: T"], ["T: type"]),
    "notes of other programs": (
        [feed("a"), use("Acme>X", ["a"], T=F, _class=(b"loc:@a",), _output_shapes=(ShapeAttr((2,)), ShapeAttr((3,)))),
         neg("y")], ["x: T"], ["y0: T", "y1: T"], ["T: type"]),
}


@pytest.mark.parametrize("row", ROWS)
def test_nodes_tell_inputs_types_attributes_and_results(row: str) -> None:
    nodes, inputs, outputs, attrs = ROWS[row]
    found = find_op("Acme>X", Graph(nodes), Path("model.pb"), runtime().host.registries.ops)
    declared = OpSpec("Acme>X", inputs, outputs, attrs).definition()
    assert (found.op.inputs, found.op.outputs, dict(found.op.attrs)) == (
        declared.inputs, declared.outputs, dict(declared.attrs))


def test_nodes_of_functions_tell_the_names_of_the_results() -> None:
    body = Function("f", [ArgDef("a", F)], [ArgDef("r", F)],
                    [use("Acme>X", ["a"], "x", T=F), Node("n", "Neg", ["x:second:0"], attrs={"T": F}),
                     Node("m", "Neg", ["x:first:0"], attrs={"T": F})], {"r": "n:y:0"})
    graph = Graph([feed("a")], functions=[body])
    found = find_op("Acme>X", graph, Path("model.pb"), runtime().host.registries.ops)
    assert [arg.name for arg in found.op.outputs] == ["second", "first"]
    assert "The order of the results is that of their use in functions." in found.doubts


def test_a_function_of_the_name_is_a_declaration() -> None:
    body = Function("Fused", [ArgDef("a", F), ArgDef("i", INT)], [ArgDef("r", F)], [], {"r": "a"})
    graph = Graph([feed("a"), feed("i", INT), use("Fused", ["a", "i"])], functions=[body])
    found = find_op("Fused", graph, Path("model.pb"), runtime().host.registries.ops)
    assert (found.source, [arg.name for arg in found.op.inputs]) == ("the model's function of this name", ["a", "i"])


@pytest.mark.parametrize("model", ["control_flow", "tables", "keras"])
def test_the_op_list_of_a_saved_model_declares_its_ops(model: str) -> None:
    """The list is TensorFlow's own, so it has the very signatures of heald's op set."""
    ops, path = runtime().host.registries.ops, DATA / "saved_models" / model / "model"
    graph = heald.load(path).session.graph
    names = {node.op for node in graph if ops.plugin_of(node.op) == "tf_ops"}
    found = {name: find_op(name, graph, path, ops) for name in names}
    listed = {name for name, entry in found.items() if entry.source == "the model's op list"}
    assert len(listed) > 3
    wrong = [name for name in listed if (found[name].op.inputs, found[name].op.outputs, found[name].op.stateful)
             != (ops.get(name).inputs, ops.get(name).outputs, ops.get(name).stateful)]
    assert wrong == []
    assert [name for name in listed if {**found[name].op.attrs}.keys() != {**ops.get(name).attrs}.keys()] == []


def test_a_declaration_of_nodes_takes_every_node() -> None:
    """Known ops are declared from their nodes alone: each node fits the declaration, with the types of its inputs."""
    ops, graph = runtime().host.registries.ops, heald.graphdef.load(DIGITS / "frozen.pb")
    for name in {node.op for node in graph if node.op != "Const"}:
        op = find_op(name, graph, DIGITS / "frozen.pb", ops).op
        for node in uses_of(name, graph, ops):
            types = [tensor.dtype for tensor in op.expand_inputs(check_attributes(op, node.attrs))]
            assert types == [*node.inputs], name


def test_the_text_of_a_declaration_declares_the_same() -> None:
    """Every op of TensorFlow's op set: a part that the notation lacks is told."""
    ops = runtime().host.registries.ops
    different = []
    for name in ops:
        op = ops.get(name)
        text, lost = spec_text(op, "None")
        declared = eval(text, {"OpSpec": OpSpec}).definition()  # noqa: S307 - our own text
        if declared.signature != op.signature and not lost:
            different.append(name)
    assert different == []


def test_ops_of_one_name_and_different_companies_are_different_functions() -> None:
    ops = runtime().host.registries.ops
    graph = Graph([feed("a"), use("Acme>X", ["a"]), use("Other>X", ["a"], "z")])
    texts = op_texts(find_op(name, graph, Path("m.pb"), ops) for name in ("Acme>X", "Other>X"))
    assert [text.function for text in texts] == ["x", "x_1"]
    with pytest.raises(heald.errors.InvalidArgument, match="op Acme>X is named twice"):
        op_texts([texts[0].found, texts[0].found])


@pytest.mark.parametrize(("op", "name"), [
    ("MyCo>FastGelu", "fast_gelu"), ("RGBToHSV", "rgb_to_hsv"), ("If", "op_if"), ("2D", "op_2d"), ("Info", "op_info"),
    ("a.b/c", "a_b_c"), ("_", "op")])
def test_a_function_has_the_name_of_its_op_in_small_letters(op: str, name: str) -> None:
    assert function_name(op) == name


def test_the_generated_package_passes_its_tests_and_the_linters(command, tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    nodes = [feed("a"), feed("s", dtypes.string), use("Acme>Gelu", ["a"], T=F, mode=b"tanh"), neg("y"),
             use("Acme>Join", ["a", "a"], "j", N=2, T=F), use("AcmeDecode", ["s"], "d", Tout=(F, INT), sizes=(1, 2)),
             neg("d:0", "dn"), neg("j", "jn"), use("Acme>Table", [], "t", shape=ShapeAttr((2,)))]
    heald.graphdef.dump(Graph(nodes), "model.pb")
    sources = [word for op in ("Acme>Gelu", "Acme>Join", "AcmeDecode", "Acme>Table")
               for word in ("--from", "model.pb", op)]
    done = command("new", "ops", "acme", *sources)
    assert done.status == 0, done.err
    assert "Acme>Gelu: its signature comes from 1 node of the model" in done.out
    next_command = done.out.splitlines()[-1].removeprefix("next: ")
    environ = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(["sh", "-c", f"{next_command} -q -p no:cacheprovider -p no:xdist"], cwd=tmp_path, env=environ,
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120)
    assert "4 passed, 4 xfailed" in ran.stdout
    for file in (*Path("acme/heald_acme").glob("*.py"), Path("acme/tests/test_ops.py")):
        compile(file.read_text("utf-8"), str(file), "exec")
        assert max(map(len, file.read_text("utf-8").splitlines())) <= 120


def test_the_name_of_the_op_names_the_plugin(command, tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    heald.graphdef.dump(Graph([feed("a"), use("Acme>FastGelu", ["a"])]), "model.pb")
    assert command("new", "ops", "--from", "model.pb", "Acme>FastGelu").status == 0
    assert Path("fast-gelu/heald_fast_gelu/ops.py").is_file()


@pytest.mark.parametrize(("arguments", "message"), [
    (["ops", "x", "--from", "model.pb", "Acme>Gelo"], "has no node of op 'Acme>Gelo'"),
    (["ops", "x", "--from", "model.pb", "Neg"], "op Neg is plugin tf_ops's already"),
    (["ops", "x", "--from", "model.pb", "Const"], "op Const is heald's already"),
    (["ops", "x", "--from", "gone.pb", "Acme>Gelu"], "gone.pb"),
    (["ops", "x", "--from", "model.pb", "Acme>Odd"], "have 1 to 2 inputs, and no attribute tells the number"),
    (["loader", "x", "--from", "model.pb", "Acme>Gelu"], "--from is for ops, and the kind is loader"),
    (["ops"], "the plugin needs a name"),
    (["ops", "--from", "model.pb", "sim"], "a plugin 'sim' is installed already"),
])
def test_a_request_that_cannot_be_met_leaves_nothing(command, tmp_path, monkeypatch, arguments, message):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    heald.graphdef.dump(Graph([feed("a"), use("Acme>Gelu", ["a"]), neg("y"), use("Acme>Odd", ["a"], "o"),
                               use("Acme>Odd", ["a", "a"], "p")]), "model.pb")
    done = command("new", *arguments)
    assert (done.status, done.out) == (1, "")
    assert message in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["model.pb"]


@pytest.mark.parametrize("damage", [
    b"", b"\x0a\xff", wire.put_bytes(2, wire.put_bytes(1, wire.put_bytes(2, b"\x0a\x05x")))])
def test_a_damaged_op_list_gives_way_to_the_nodes(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "saved_model.pb").write_bytes(damage)
    graph = Graph([feed("a"), use("Acme>X", ["a"], T=F)])
    found = find_op("Acme>X", graph, tmp_path, runtime().host.registries.ops)
    assert found.source == "1 node of the model"


def test_files_of_a_package_are_the_templates_own() -> None:
    found = FoundOp(OpSpec("Acme>X", ["x: T"], ["y: T"], ["T: type"]).definition(), "a test", (), ())
    assert [*package_files("heald_acme", op_texts([found]), "m.pb")] == [
        "heald_acme/ops.py", "heald_acme/kernels.py", "heald_acme/plugin.py", "tests/test_ops.py", "README.md"]
