"""The steps of graph passes in a report: added, removed and rewritten nodes, and the pictures of the changes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.cli import main
from heald.graphs.graph.graph import Graph, Node
from heald_report.node_table import NodeTable, bodies_of
from heald_report.pass_steps import MOST_CHANGED_BOXES, MOST_NAMES, MOST_NEIGHBOURS, changes_of, step_rows, timed_steps

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"


def rows_of(*graphs: Graph):
    steps = timed_steps([("", graphs[0]), *((f"pass{index}", graph) for index, graph in enumerate(graphs[1:]))])
    return step_rows(steps, {"pass0": "mine"}, NodeTable(bodies_of(graphs[0])))


def boxes_of(pattern):
    return {box[0]: (box[1], box[2]) for box in pattern["picture"]["boxes"]}


def blocks(count, op):
    nodes = [placeholder("x", (2,))]
    for number in range(count):
        nodes += [node(f"a{number}", "Neg", nodes[-1].name), node(f"b{number}", op, f"a{number}")]
    return nodes


def test_a_pass_that_changes_nothing_has_no_pattern():
    graph = Graph([placeholder("x", (2,)), node("y", "Neg", "x")])
    row, = rows_of(graph, graph)
    assert (row["patterns"], row["touched"], row["before"], row["after"]) == ([], [], 2, 2)
    assert (row["name"], row["plugin"]) == ("pass0", "mine")


def test_nodes_are_added_removed_and_rewritten():
    x, c = placeholder("x", (2,)), const("c", [1, 2])
    before = Graph([x, c, node("old", "Mul", "x", "c"), node("y", "AddV2", "old", "x"), node("z", "Neg", "y")])
    after = Graph([x, node("new", "Abs", "x"), node("y", "Sub", "new", "x"), before["z"]])
    row, = rows_of(before, after)
    assert [row[change] for change in ("added", "removed", "rewritten")] == [1, 2, 1]
    pattern, = row["patterns"]
    assert boxes_of(pattern) == {"x": ("Placeholder", "same"), "old": ("Mul", "removed"), "new": ("Abs", "added"),
                                 "y": ("AddV2 → Sub", "rewritten"), "z": ("Neg", "same")}
    assert pattern["picture"]["constants"] == 1
    labels = [box[0] for box in pattern["picture"]["boxes"]]
    assert {(labels[a], labels[b]): side for a, b, side, _ in pattern["picture"]["edges"]} == {
        ("x", "old"): "removed", ("old", "y"): "removed", ("x", "new"): "added", ("new", "y"): "added",
        ("x", "y"): "same", ("y", "z"): "same"}


def test_equal_changes_are_one_pattern_and_rarer_ones_another():
    before, after = Graph(blocks(50, "Abs")), blocks(50, "Exp")
    after[-1] = node("b49", "Log", "a49")
    row, = rows_of(before, Graph(after))
    assert sorted(pattern["count"] for pattern in row["patterns"]) == [1, 49]
    assert row["rewritten"] == 50
    assert len(row["patterns"][0]["names"]) == MOST_NAMES
    assert row["patterns"][0]["more"] == 9


def test_a_large_place_has_a_bounded_picture():
    def chain(op):
        nodes = [placeholder("x", (2,))]
        for number in range(500):
            nodes.append(node(f"n{number}", op, nodes[-1].name))
        return Graph(nodes)

    pattern, = rows_of(chain("Abs"), chain("Exp"))[0]["patterns"]
    assert len(pattern["picture"]["boxes"]) <= MOST_CHANGED_BOXES + MOST_NEIGHBOURS
    assert pattern["picture"]["hidden"] == 500 - MOST_CHANGED_BOXES


def test_edges_of_control_join_no_places():
    nodes = [placeholder("x", (2,)), node("a", "Abs", "x"), node("b", "Abs", "x"),
             Node("all", "NoOp", ["^a", "^b"])]
    after = Graph([nodes[0], node("a", "Exp", "x"), node("b", "Exp", "x")])
    row, = rows_of(Graph(nodes), after)
    assert sorted((pattern["count"], len(pattern["names"])) for pattern in row["patterns"]) == [(1, 1), (2, 2)]


@pytest.mark.parametrize(("changed", "is_changed"), [
    ({}, False), ({"device": "/device:CPU:1"}, True), ({"op": "Abs"}, True), ({"inputs": ["x:0", "^c"]}, True)])
def test_a_node_that_was_only_made_again_is_the_same(changed, is_changed):
    fields = {"name": "y", "op": "Neg", "inputs": ["x"], "attrs": {"T": heald.api.dtypes.float32}}
    before, node_made_again = {"y": Node(**fields)}, Node(**(fields | changed))
    assert bool(changes_of(before, {"y": node_made_again})) == is_changed


def test_a_circle_of_changed_nodes_is_drawn():
    i32, zero = heald.api.dtypes.int32, const("zero", 0, np.int32)

    def loop(op):
        return Graph([zero, Node("merge", "Merge", ["zero", "next"], attrs={"T": i32, "N": 2}),
                      Node("step", op, ["merge"], attrs={"T": i32}),
                      Node("next", "NextIteration", ["step"], attrs={"T": i32})])

    row, = rows_of(loop("Abs"), loop("Neg"))
    assert set(boxes_of(row["patterns"][0])) == {"merge", "step", "next"}


def test_the_page_of_a_model_has_the_steps_of_all_its_passes(tmp_path):
    page = tmp_path / "report.html"
    assert main(["report", str(DIGITS), "-o", str(page), "--no-run"]) == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])
    steps = {step["name"]: step for step in data["passes"]}
    assert all(step["plugin"] for step in steps.values())
    assert steps["freeze"]["patterns"] == []
    scales = steps["scales"]
    assert (scales["before"] - scales["after"], scales["removed"], scales["plugin"]) == (18, 18, "simplify")
    assert any(pattern["count"] == 9 and ("AddV2 → BiasAdd", "rewritten") in boxes_of(pattern).values()
               for pattern in scales["patterns"])
