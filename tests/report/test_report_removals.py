"""The steps of passes in a report: why nodes were removed, and the fields of rewritten nodes before and after."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from heald.api import Func, dtypes
from heald.cli import main
from heald.graphs.graph.graph import Graph, Node
from heald_report.field_changes import MOST_VALUE_CHARACTERS, field_changes, value_text
from heald_report.node_table import NodeTable, bodies_of
from heald_report.pass_steps import MOST_CHANGE_ROWS, step_rows, timed_steps
from heald_report.removals import removal_reasons, word_counts

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"
X = placeholder("x", (2,))


def reasons_of(before, after):
    reasons = removal_reasons(Graph(before).nodes, Graph(after).nodes)
    return {name: str(reason) for name, reason in reasons.items()}


def test_a_skipped_node_is_told_with_the_tensor_that_its_consumers_read():
    before = [X, node("i", "Identity", "x"), node("j", "Identity", "i"), node("y", "Neg", "j")]
    assert reasons_of(before, [X, node("y", "Neg", "x")]) == {
        "i": "removed with j", "j": "skipped: its consumers read x"}


def test_an_operand_that_a_skipped_node_alone_read_is_removed_with_it():
    before = [X, const("one", [1.0, 1.0]), node("m", "Mul", "x", "one"), node("y", "Neg", "m")]
    assert reasons_of(before, [X, node("y", "Neg", "x")]) == {
        "one": "removed with m", "m": "skipped: its consumers read x"}


def test_duplicates_are_merged_at_every_level():
    before = [X, node("a", "Neg", "x"), node("b", "Exp", "a"), node("a2", "Neg", "x"), node("b2", "Exp", "a2"),
              node("y", "AddV2", "b", "b2")]
    after = [X, before[1], before[2], node("y", "AddV2", "b", "b")]
    assert reasons_of(before, after) == {"a2": "merged into a", "b2": "merged into b"}


def test_an_older_node_with_other_attributes_is_no_equal_one():
    before = [X, Node("a", "Op", ["x"], attrs={"n": 1}), Node("b", "Op", ["x"], attrs={"n": 2}), node("y", "Neg", "b")]
    assert reasons_of(before, [X, before[1], node("y", "Neg", "a")]) == {"b": "replaced by a"}


def test_a_folded_part_is_told_with_the_constant():
    before = [const("c", [1.0]), node("d", "Neg", "c"), node("e", "Exp", "d"), node("y", "Abs", "e")]
    assert reasons_of(before, [const("e", [0.4]), node("y", "Abs", "e")]) == {
        "c": "folded into the constant e", "d": "folded into the constant e"}
    assert reasons_of(before, [const("new", [0.4]), node("y", "Abs", "new")])["e"] == "folded into the constant new"


def test_a_replaced_node_and_a_part_of_another_are_told_apart():
    before = [X, const("b", [1.0, 1.0]), node("m", "Mul", "x", "x"), node("y", "AddV2", "m", "b")]
    assert reasons_of(before, [X, before[1], node("sq", "Square", "x"), node("y", "AddV2", "sq", "b")]) == {
        "m": "replaced by sq"}
    assert reasons_of(before, [X, before[1], node("y", "FusedOp", "x", "x", "b")]) == {"m": "part of y"}


def test_a_node_that_nothing_needs_is_dead():
    before = [X, node("a", "Neg", "x"), node("b", "Exp", "a"), node("y", "Abs", "x")]
    assert reasons_of(before, [X, before[3]]) == {"a": "dead", "b": "dead"}


def test_an_edge_of_control_is_no_longer_awaited():
    before = [X, Node("wait", "NoOp"), Node("y", "Neg", ["x"], controls=["wait"], attrs={"T": dtypes.float32})]
    assert reasons_of(before, [X, node("y", "Neg", "x")]) == {"wait": "no longer awaited by y"}


def test_a_loop_of_removed_nodes_and_a_chain_of_thousands_have_reasons():
    loop = [X, Node("m", "Merge", ["x", "n"]), Node("n", "NextIteration", ["m"])]
    assert set(reasons_of(loop, [X]).values()) == {"dead"}
    chain = [X]
    for number in range(5000):
        chain.append(node(f"n{number}", "Identity", chain[-1].name))
    reasons = reasons_of([*chain, node("y", "Neg", chain[-1].name)], [X, node("y", "Neg", "x")])
    assert len(reasons) == 5000
    assert reasons["n4999"] == "skipped: its consumers read x"


def test_words_are_counted():
    before = [X, node("i", "Identity", "x"), node("a", "Exp", "x"), node("y", "Neg", "i")]
    reasons = removal_reasons(Graph(before).nodes, Graph([X, node("y", "Neg", "x")]).nodes)
    assert sorted(word_counts(reasons.values())) == [(1, "dead"), (1, "skipped")]


def test_fields_of_a_rewritten_node_are_told_before_and_after():
    before = Node("y", "Conv2D", ["x", "w"], attrs={"padding": b"SAME", "strides": [1, 1], "T": dtypes.float32})
    after = Node("y", "_FusedConv2D", ["x", "w", "b"], controls=["c"], device="/device:CPU:0",
                 attrs={"padding": b"VALID", "strides": [1, 1], "T": dtypes.float32, "epsilon": 0.5})
    assert field_changes(before, after) == [
        ("op", "Conv2D", "_FusedConv2D"), ("device", "", "/device:CPU:0"), ("inputs", "x, w", "x, w, b, ^c"),
        ("padding", "SAME", "VALID"), ("epsilon", "", "0.5")]


def test_a_tensor_is_its_type_and_shape_and_never_its_elements():
    rows = field_changes(const("c", [[1.25, 2.5]]), const("c", [[3.75, 4.5]]))
    assert rows == [("value", "tensor float32[1, 2]", "tensor float32[1, 2], other elements")]
    assert field_changes(const("c", [1.25]), const("c", 7, np.int32))[-1][2].startswith("tensor int32[")


@pytest.mark.parametrize(("value", "text"), [
    (True, "True"), (dtypes.int32, "int32"), (b"\xff\x00", "�"), ([1, None], "[1, None]"), (Func("f"), "f"),
    ((dtypes.int32, dtypes.string), "[int32, string]"), ("/home/me/x.so", "x.so"), (b"<script>", "<script>")])
def test_values_of_attributes_are_texts(value, text):
    assert value_text(value).startswith(text)
    assert value_text(value).isprintable()


@pytest.mark.parametrize("value", [b"a" * 10_000, [1] * 10_000, ["x" * 500] * 500])
def test_a_long_value_is_cut(value):
    assert len(value_text(value)) <= MOST_VALUE_CHARACTERS + 1


def test_a_pass_that_rewrites_thousands_of_nodes_has_a_bounded_table():
    before = Graph([X, *(node(f"n{number}", "Neg", "x") for number in range(1000))])
    after = Graph([X, *(node(f"n{number}", "Exp", "x") for number in range(1000))])
    row, = step_rows(timed_steps([("", before), ("pass", after)]), {}, NodeTable(bodies_of(before)))
    assert (len(row["changes"]), row["more_changes"]) == (MOST_CHANGE_ROWS, 1000 - MOST_CHANGE_ROWS)
    assert row["changes"][0] == ["n0", 1, "rewritten", "op", "Neg", "Exp", ""]
    json.dumps(row)


def test_the_page_tells_why_the_passes_of_a_model_removed_nodes(tmp_path):
    page = tmp_path / "report.html"
    assert main(["report", str(DIGITS), "-o", str(page), "--no-run"]) == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)[1])
    steps = {step["name"]: step for step in data["passes"]}
    assert steps["identities"]["why"] == [[2, "skipped"]]
    assert all(row[6] for step in steps.values() for row in step["changes"] if row[2] == "removed")
    assert {row[3] for row in steps["scales"]["changes"]} >= {"op", "inputs", "value", "data_format"}
    assert all(names[3] for names in steps["scales"]["patterns"][0]["names"] if names[1] == "removed")
