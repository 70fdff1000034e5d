"""heald tfg: a model printed, parsed, verified, exported and compared."""

import io
import json
import sys

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.graphs.graph.graph import Function, Graph
from heald.graphs.graph.graphdef import dump, load, loads


@pytest.fixture
def model(saved):
    return saved(placeholder("x", (2,)), const("one", [1, 2]), node("y", "AddV2", "x", "one"))


def test_a_model_is_printed_and_exported_byte_for_byte(command, digits, tmp_path):
    assert command("tfg", "print", digits / "frozen.pb", "-o", "digits.tfg").status == 0
    done = command("tfg", "export", "digits.tfg", "-o", "digits.pb")
    assert (done.status, done.out) == (0, "wrote digits.pb: 200 nodes, 78.5 kB\n")
    assert (tmp_path / "digits.pb").read_bytes() == (digits / "frozen.pb").read_bytes()


def test_text_goes_to_stdout_and_comes_from_stdin(command, model, monkeypatch):
    text = command("tfg", "print", model).out
    assert text == heald.tfg.dumps(load(model))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert command("tfg", "parse").out == text


def test_canonical_text_and_export_have_the_defaults_of_ops(command, saved):
    path = saved(placeholder("x", (2,)), node("y", "Identity", "x"), node("s", "Shape", "x"))
    assert "out_type" not in command("tfg", "print", path).out
    assert "out_type = i32" in command("tfg", "print", path, "--canonical").out
    command("tfg", "print", path, "-o", "model.tfg")
    command("tfg", "export", "model.tfg", "-o", "model.pbtxt", "--canonical")
    assert load("model.pbtxt")["s"].attrs["out_type"] is heald.api.dtypes.int32


def test_large_constants_are_left_out_on_request(command, tmp_path):
    inner = Function("f", nodes=[const("c", np.arange(9.0))])
    dump(Graph([const("large", np.arange(12.0).reshape(3, 4)), const("small", [1, 2])], [inner]), "model.pb")
    text = command("tfg", "print", "model.pb", "--elide", "4").out
    assert "value = dense_resource<__elided__> : tensor<3x4xf32>" in text
    assert "value = dense_resource<__elided__> : tensor<9xf32>" in text
    assert "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>" in text
    (tmp_path / "elided.tfg").write_text(text)
    done = command("tfg", "parse", "elided.tfg")
    assert done.status == 1
    assert "elided.tfg:3:" in done.err


def test_verify_lists_every_node_that_does_not_fit_its_op(command, saved, model):
    assert command("tfg", "verify", model).out == "3 nodes and 0 functions: no fault\n"
    bad = saved(placeholder("x", (2,)), node("lonely", "AddV2", "x"), node("odd", "NoSuchOp", "x"), name="bad.pb")
    done = command("tfg", "verify", bad)
    assert done.status == 1
    assert [line[:2] for line in done.words[1:]] == [["lonely", "AddV2"], ["odd", "NoSuchOp"]]
    assert [row["node"] for row in json.loads(command("tfg", "verify", bad, "--json").out)] == ["lonely", "odd"]


def test_models_of_any_form_are_compared_by_value(command, model):
    command("tfg", "print", model, "-o", "same.tfg")
    assert command("tfg", "diff", model, "same.tfg").out == "no difference\n"
    dump(load(model).set_constant("one", [1, 3]), "other.pb")
    done = command("tfg", "diff", "same.tfg", "other.pb", "--text")
    assert (done.status, done.out.splitlines()[0]) == (
        1, "~ node one value: float32[2] [1.0, 2.0] -> float32[2] [1.0, 3.0]")
    (row,) = json.loads(command("tfg", "diff", "same.tfg", "other.pb", "--json").out)
    assert (row["name"], row["field"]) == ("one", "value")


@pytest.mark.parametrize(("arguments", "said"), [
    (("parse", "broken.tfg"), "broken.tfg:1:"),
    (("export", "broken.tfg", "-o", "out.pb"), "broken.tfg:1:"),
    (("export", "broken.tfg", "-o", "out.txt"), "exported as .pb or .pbtxt"),
    (("print", "absent.pb"), "absent.pb"),
    (("parse", "absent.tfg"), "absent.tfg"),
])
def test_bad_input_is_a_typed_error_and_writes_nothing(command, tmp_path, arguments, said):
    (tmp_path / "broken.tfg").write_text("module { tfg.graph")
    done = command("tfg", *arguments)
    assert done.status == 1
    assert done.err.startswith("error: ")
    assert said in done.err
    assert not [*tmp_path.glob("out*")]


def test_a_failed_print_leaves_the_file_as_it_was(command, tmp_path, model):
    (tmp_path / "kept.tfg").write_text("precious")
    (tmp_path / "broken.tfg").write_text("module {")
    assert command("tfg", "parse", "broken.tfg", "-o", "kept.tfg").status == 1
    assert (tmp_path / "kept.tfg").read_text() == "precious"
    assert loads((tmp_path / "model.pb").read_bytes())
