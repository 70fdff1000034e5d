"""heald opt: graph passes over models by name, their list, and the way to texts of host programs."""

from __future__ import annotations

import json

import heald
import numpy as np
import pytest
from builders.control_flow import branch, function
from builders.graphs import const, node, placeholder
from heald.graphs.graph.graph import Graph
from heald.graphs.graph.graphdef import dump, load
from heald.runtime.values import dtypes

TWICE = function("twice", "x", [node("sum", "AddV2", "x", "x")], {"y": "sum:z:0"})
HALF = function("half", "x", [const("two", 2), node("part", "RealDiv", "x", "two:output:0")], {"y": "part:z:0"})


@pytest.fixture
def model(tmp_path):
    nodes = [placeholder("x", (2,)), placeholder("p", (), dtypes.bool_), branch("y", "p", "twice", "half", "x")]
    dump(Graph(nodes, [TWICE, HALF]), tmp_path / "model.pb")
    return str(tmp_path / "model.pb")


def test_passes_run_in_their_order_and_the_result_is_written(command, model):
    done = command("opt", "--passes", "lower-control-flow,dead-nodes", model, "-o", "out.pb")
    assert (done.status, done.err) == (0, "")
    optimized_graph = load("out.pb")
    assert not optimized_graph.functions
    assert {"Switch", "Merge"} <= {optimized_node.op for optimized_node in optimized_graph}
    with heald.Session(optimized_graph) as session:
        np.testing.assert_array_equal(session.run("y", {"x": np.float32([4, 6]), "p": False}), [2, 3])


def test_opt_without_an_output_tells_the_effect_of_each_pass(command, model, tmp_path):
    done = command("opt", "--passes", "lower-control-flow", model, "--json")
    (row,) = json.loads(done.out)["passes"]
    assert (row["pass"], row["less"], row["more"]["Merge"]) == ("lower-control-flow", {"If": 1}, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pb"]


@pytest.mark.parametrize(("name", "changed", "graphs"), [
    ("lower-control-flow", 1, 3),  # the model alone: dead-nodes removes the functions
    ("pools", 0, 3),
    ("add-defaults", 1, 3),
    ("name-compression", 2, 3),  # the functions: no name of the model may change
    ("topological-sort", 0, 3),
])
def test_opt_counts_the_graphs_that_a_pass_changed(command, model, name, changed, graphs):
    (row,) = json.loads(command("opt", "--passes", name, model, "--json").out)["passes"]
    assert (row["changed"], row["graphs"]) == (changed, graphs)
    assert [name, *f"{changed} of {graphs} graphs".split()] in [
        [words[0], *words[2:6]] for words in command("opt", "--passes", name, model).words if words]


def test_fed_and_fetched_tensors_say_what_stays(command, saved):
    model = saved(placeholder("x", (2,)), node("a", "Neg", "x"), node("b", "Abs", "a"), node("c", "Exp", "b"))
    assert command("opt", "--passes", "dead-nodes", model, "--feed", "a", "--fetch", "b:0", "-o", "out.pb").status == 0
    assert [(graph_node.name, graph_node.op) for graph_node in load("out.pb")] == [("a", "Placeholder"), ("b", "Abs")]


def test_the_list_has_the_passes_of_core_and_plugins_with_what_they_preserve(command):
    rows = {row["name"]: row for row in json.loads(command("opt", "--list-passes", "--json").out)}
    assert rows["functionalize"]["plugin"] == "heald"
    assert rows["constants"] | {"about": "", "preserves": ""} == {
        "name": "constants", "stage": "graph", "plugin": "simplify", "about": "", "preserves": "", "idempotent": "yes"}
    assert all(row["about"] and row["preserves"] and row["idempotent"] for row in rows.values())
    assert "lower-control-flow" in command("opt", "--list-passes").out


@pytest.mark.parametrize(("arguments", "why"), [
    (("model.pb",), "no pass is named for 'model.pb'"),
    (("--passes", "inline"), "a model is a file or folder, and none is named"),
    (("--passes", "inlin", "model.pb"), "did you mean inline?"),
    (("--passes", "freeze", "model.pb"), "part of loading a model"),
    (("--passes", "inline", "model.pb", "-o", "model.pb"), "exists already"),
    (("--passes", "inline", "model.pb", "-o", "out.onnx"), "graphs are read and written as"),
    (("--passes", "dead-nodes", "model.pb", "--fetch", "z"), "no node is called 'z'"),
])
def test_wrong_arguments_are_typed_errors(command, model, arguments, why):
    done = command("opt", *arguments)
    assert done.status == 1
    assert why in done.err


def test_texts_of_programs_are_rewritten_by_the_distribution_for_them(command, tmp_path):
    text = tmp_path / "p.mlir"
    text.write_text("func.func @f() -> i32 {\n  %a = tfrt.constant.i32 1\n  %b = tfrt.constant.i32 2\n"
                    "  tfrt.return %a : i32\n}\n")
    done = command("opt", "--canonicalize", str(text))
    assert done.status == 0, done.err
    assert "constant.i32 2" not in done.out
