"""heald translate: .pb and .pbtxt, by suffix."""

from pathlib import Path

import pytest
from builders.graphs import node, placeholder


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
