"""heald translate: .pb and .pbtxt, by suffix."""

from pathlib import Path

import pytest
from builders.graphs import node, placeholder
from heald.graphs.graph import graphdef


@pytest.fixture
def model(saved):
    return saved(placeholder("x", (None, 2)), node("y", "Neg", "x"))


def test_a_graph_survives_translation_there_and_back(command, model):
    done = command("translate", model, "-o", "y.pbtxt")
    assert done.status == 0
    assert done.out.startswith("wrote y.pbtxt: 2 nodes, ")
    assert 'op: "Neg"' in Path("y.pbtxt").read_text()
    assert command("translate", "y.pbtxt", "-o", "back.pb").status == 0
    assert command("run", "back.pb", "--input", "[[1, 2]]").out == "y float32[1,2]\n  [[-1. -2.]]\n"


def test_a_binary_graph_keeps_its_bytes(command, digits):
    command("translate", digits / "frozen.pb", "-o", "same.pb")
    assert Path("same.pb").read_bytes() == (digits / "frozen.pb").read_bytes()


def test_the_tf_graph_ir_is_a_form_too(command, digits):
    assert command("translate", digits / "frozen.pb", "-o", "digits.tfg").status == 0
    assert Path("digits.tfg").read_text().startswith("module {\n  tfg.graph #tf_type.version<producer = 2474")
    assert command("translate", "digits.tfg", "-o", "same.pb").status == 0
    assert Path("same.pb").read_bytes() == (digits / "frozen.pb").read_bytes()


@pytest.mark.parametrize("forms", [("model.pb", "y.onnx"), ("model.onnx", "y.pb"), ("folder", "y.pb")])
def test_other_forms_are_refused_by_name(command, model, forms):
    source, target = forms
    done = command("translate", source, "-o", target)
    assert (done.status, done.out) == (1, "")
    assert "graphs are read and written as .pb and .pbtext, .pbtxt" in done.err
    assert not Path(target).exists()


def test_a_placed_graph_has_devices_kernels_and_reasons(command, saved):
    model = saved(placeholder("x", (None, 2)), node("y", "Neg", "x"), node("z", "NoSuchOp", "y"))
    done = command("translate", model, "--placed", "placed.pb")
    assert (done.status, done.out[:25]) == (0, "wrote placed.pb: 3 nodes,")
    placed = graphdef.load("placed.pb")
    assert placed["y"].device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert placed["y"].attrs["_heald_kernel"] == b"cpu.Neg"
    assert placed["y"].attrs["_heald_reason"]
    assert placed["z"].device == ""
    assert b"NoSuchOp" in placed["z"].attrs["_heald_reason"]


def test_a_placed_graph_runs_with_the_same_results(command, digits):
    assert command("translate", digits / "frozen.pb", "--placed", "placed.pbtxt").status == 0
    before, after = (command("run", model, "--input", f"{digits / 'test.npz'}:image")
                     for model in (digits / "frozen.pb", "placed.pbtxt"))
    assert before.status == 0
    assert before.out == after.out


@pytest.mark.parametrize("name", ["a>b", "../x", ".//", "a" * 3000])
def test_odd_names_stay_as_they_are_in_a_placed_graph(command, saved, name):
    model = saved(placeholder("x", (2,)), node(name, "Neg", "x"))
    assert command("translate", model, "--placed", "placed.pb").status == 0
    assert name in graphdef.load("placed.pb").nodes


@pytest.mark.parametrize(("arguments", "message"), [
    (["x.pb", "--placed", "y.onnx"], "graphs are read and written as"), (["no.pb", "--placed", "y.pb"], "no.pb"),
    (["x.pb", "--placed", "no/y.pb"], "no/y.pb"), (["x.pb", "--placed", "y.pb", "-o", "z.pb"], "not allowed with"),
    (["x.pb"], "--placed is required")])
def test_wrong_requests_for_a_placed_graph_are_errors(command, saved, arguments, message):
    Path("x.pb").write_bytes(Path(saved(placeholder("x", (2,)), node("y", "Neg", "x"))).read_bytes())
    done = command("translate", *arguments)
    assert done.status != 0
    assert message in done.err
    assert not Path("y.pb").exists()


def test_a_compiled_model_has_no_graph_to_place(command, digits):
    assert command("compile", digits / "frozen.pb", "-o", "d.bef", "--input", "image:1,8,8,1").status == 0
    done = command("translate", "d.bef", "--placed", "y.pb")
    assert done.status == 1
    assert "d.bef" in done.err
