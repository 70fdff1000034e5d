"""heald edit: steps of surgery in the order of the command line, and the summary of their changes."""

import json

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.graphs.graph.graphdef import load
from heald.runtime.values import dtypes


@pytest.fixture
def model(saved):
    return saved(placeholder("x", (2,)), const("one", [1, 2]), node("a/sum", "AddV2", "x", "one"),
                 node("a/y", "Neg", "a/sum"), node("z", "Exp", "a/sum"))


@pytest.fixture
def run_edit(command, model):
    def edit(*steps):
        done = command("edit", model, "-o", "out.pb", *steps)
        assert done.status == 0, done.err
        return load("out.pb")

    return edit


@pytest.mark.parametrize(("steps", "expected"), [
    (("--rename", "a/=b/", "--rename", "z=w"), lambda g: g.rename("a/", "b/").rename("z", "w")),
    (("--rename", "=m/"), lambda g: g.rename("", "m/")),
    (("--remove", "z,a/y"), lambda g: g.remove("z", "a/y")),
    (("--bypass", "a/y"), lambda g: g.bypass("a/y")),
    (("--rewire", "a/sum=x"), lambda g: g.rewire("a/sum", "x")),
    (("--set-input", "a/sum:1=x"), lambda g: g.set_input("a/sum", 1, "x")),
    (("--const", "one=[3, 4]"), lambda g: g.set_constant("one", [3, 4])),
    (("--dtype", "x=float64"), lambda g: g.set_dtype("x", dtypes.float64)),
    (("--expose-input", "a/sum=s"), lambda g: g.expose_input("a/sum", "s", dtype=dtypes.float32)),
    (("--expose-output", "a/sum=s"), lambda g: g.expose_output("a/sum", "s", dtype=dtypes.float32)),
    (("--keep-outputs", "a/y"), lambda g: g.keep_outputs("a/y")),
    (("--drop-outputs", "z"), lambda g: g.drop_outputs("z")),
    (("--set-input", "a/sum:0=one", "--drop-inputs", "x"), lambda g: g.set_input("a/sum", 0, "one").drop_inputs("x")),
    (("--extract", "a/sum:0:a/y,z:0"), lambda g: g.extract("a/sum:0", ["a/y", "z:0"],
                                                           dtypes={"a/sum:0": dtypes.float32})),
])
def test_each_step_is_the_method_of_its_name(run_edit, model, steps, expected):
    assert not heald.graphs.graph.compare(run_edit(*steps), expected(load(model)))


def test_steps_are_done_in_the_order_of_the_command_line(run_edit):
    assert "w" in run_edit("--rename", "z=w", "--rename", "x=z")
    assert [n.name for n in run_edit("--force", "--keep-outputs", "a/y", "--const", "x=[0, 1]", "--rename", "a/=")] == [
        "x", "one", "sum", "y"]


def test_constants_come_from_files_of_numpy_too(run_edit, tmp_path):
    np.save(tmp_path / "new.npy", np.float32([[5]]))
    assert run_edit("--const", "one=new.npy")["one"].attrs["value"].array().tolist() == [[5]]


def test_another_model_is_merged_under_a_prefix(run_edit, saved):
    other = saved(placeholder("x", (2,)), node("y", "Abs", "x"), name="other.pb")
    merged_graph = run_edit("--merge", f"{other}:head/", "--rewire", "head/x=a/y", "--remove", "head/x")
    assert [str(i) for i in merged_graph["head/y"].inputs] == ["a/y"]


def test_another_model_takes_the_place_of_nodes_and_reads_tensors_by_name(run_edit, saved):
    other = saved(placeholder("a/sum", (2,)), node("z", "Log", "a/sum"), name="other.pb")
    replaced_graph = run_edit("--replace", f"z={other}")
    assert (replaced_graph["z"].op, [str(i) for i in replaced_graph["z"].inputs]) == ("Log", ["a/sum"])


def test_the_summary_compares_the_result_with_the_model(command, model):
    done = command("edit", model, "-o", "out.pb", "--remove", "z", "--const", "one=[1, 3]")
    assert done.words[1:4] == [
        ["removed", "node", "z", "Exp(a/sum)"],
        ["changed", "node", "one", "value", "float32[2]", "[1.0,", "2.0]", "float32[2]", "[1.0,", "3.0]"],
        ["1", "node", "removed,", "1", "node", "changed"]]
    assert done.out.splitlines()[-1].startswith("wrote out.pb: 4 nodes, ")
    summary = json.loads(command("edit", model, "-o", "out.pb", "--force", "--remove", "z", "--json").out)
    assert (summary["nodes"], [row["name"] for row in summary["changes"]]) == (4, ["z"])


def test_a_file_that_exists_is_replaced_on_request_only(command, model, tmp_path):
    (tmp_path / "out.pb").write_bytes(b"precious")
    done = command("edit", model, "-o", "out.pb")
    assert (done.status, (tmp_path / "out.pb").read_bytes()) == (1, b"precious")
    assert "--force replaces it" in done.err
    assert command("edit", model, "-o", "out.pb", "--force").status == 0
    assert command("edit", "out.pb", "-o", "out.pb", "--force", "--remove", "z").status == 0
    assert "z" not in load("out.pb")


def test_a_failed_step_writes_nothing(command, model, tmp_path):
    assert command("edit", model, "-o", "out.pb", "--remove", "z", "--remove", "x").status == 1
    assert not (tmp_path / "out.pb").exists()


@pytest.mark.parametrize(("steps", "why"), [
    (("--rename", "x"), "'x' after --rename is no OLD=NEW"), (("--rename", "q=r"), "q"),
    (("--set-input", "z=x"), "is no NODE:INDEX=TENSOR"), (("--set-input", "z:-1=x"), "is no NODE:INDEX=TENSOR"),
    (("--extract", "x"), "is no INPUT,..:OUTPUT,.."), (("--const", "one=missing.npy"), "'missing.npy' does not exist"),
    (("--const", "one=text"), "does not fit float32"), (("--dtype", "x=floaty"), "floaty"),
    (("--freeze",), "--freeze is for models with signatures"), (("--passes", "duplicate"), "did you mean duplicates?"),
    (("--passes", "freeze"), "'freeze' is part of loading a model"), (("--merge", "missing.pb"), "missing.pb"),
    (("--remove", "a/sum"), "'a/y' needs it"),
])
def test_wrong_steps_are_typed_errors(command, model, steps, why):
    done = command("edit", model, "-o", "out.pb", *steps)
    assert done.status == 1
    assert why in done.err


def test_the_suffix_tells_the_form(command, model):
    assert command("edit", model, "-o", "out.pbtxt", "--remove", "z").status == 0
    assert "z" not in load("out.pbtxt")
    assert "graphs are read and written as .pb" in command("edit", model, "-o", "out.onnx").err


def test_a_saved_model_is_frozen_and_then_runs_without_its_variables(command, digits):
    image = np.load(digits / "test.npz")["image"][:3]
    done = command("edit", digits / "saved_model", "-o", "out.pb", "--freeze", "--rename", "=m/")
    assert done.status == 0, done.err
    graph = load("out.pb")
    (fed,) = (n.name for n in graph if n.op == "Placeholder")
    (expected,) = heald.load(digits / "frozen.pb").session.run(["probabilities:0"], {"image:0": image})
    with heald.Session(graph) as session:
        outputs = session.run(next(n.name for n in graph if n.op == "Softmax"), {fed: image})
    np.testing.assert_allclose(outputs, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("steps", [(), ("--rename", "=m/")])
def test_a_graph_with_variables_is_not_written_without_their_values(command, digits, steps):
    done = command("edit", digits / "saved_model", "-o", "out.pb", *steps)
    assert done.status == 1
    assert "a GraphDef cannot hold it" in done.err
    assert "--freeze makes constants" in done.err


def test_requested_passes_keep_inputs_and_outputs(command, saved):
    model = saved(placeholder("x", (2,)), const("one", [1, 2]), node("n", "Neg", "one"), node("unread", "Abs", "x"),
                  node("y", "AddV2", "x", "n"))
    assert command("edit", model, "-o", "out.pb", "--passes", "constants").status == 0
    optimized_graph = load("out.pb")
    assert {n.name: n.op for n in optimized_graph} == {"x": "Placeholder", "n": "Const", "unread": "Abs", "y": "AddV2"}
    assert optimized_graph["n"].attrs["value"].array().tolist() == [-1, -2]
    assert command("edit", "out.pb", "-o", "twice.pb", "--passes", "constants").out.startswith("no difference")
