"""The placement of a report: the rule of each kernel, the packs that lost, and lines that sum up reasons."""

from __future__ import annotations

from pathlib import Path

import heald
from builders.graphs import node, placeholder
from heald.errors import Unimplemented
from heald.graphs.graph.graph import Graph
from heald.runtime.contract.placement import Assignment, Placement
from heald_report.node_table import NodeTable, TextPool, bodies_of
from heald_report.page import page_data
from heald_report.placement_summary import MOST_LINES, placement_summary

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "frozen.pb"


def placed(**rows):
    return Placement({name: Assignment(name, "Neg", "", **fields) for name, fields in rows.items()})


def test_the_table_has_the_rule_and_the_losers_of_explain():
    model = heald.load(DIGITS)
    data = page_data(model, None)
    texts, nodes = data["texts"], data["nodes"]
    rows = {row["node"]: (row["choice"], row["lost"]) for row in model.placement().table()}
    shown = {name: (texts[rule], texts[lost]) for name, rule, lost in zip(
        nodes["name"], nodes["rule"], nodes["lost"], strict=True)}
    assert shown == rows
    assert len(set(rows.values())) > 1


def test_nodes_are_counted_by_device_and_rule():
    summary = placement_summary(heald.load(DIGITS).placement())
    assert sum(count for count, *_ in summary["placed"]) == 200
    assert summary["placed"][0] == [140, "CPU:0", "first in order with a kernel"]
    assert [60, "the host", "needs no kernel"] in summary["placed"]
    assert sum(count for count, *_ in summary["kernels"]) == 140


def test_nodes_that_the_page_lacks_do_not_count():
    placement = placed(a={"device": "CPU:0", "reason": "r"}, save={"device": "CPU:0", "reason": "r"})
    assert placement_summary(placement, {"a"})["placed"] == [[1, "CPU:0", "r"]]


def test_reasons_that_differ_in_names_or_figures_are_one_line():
    summary = placement_summary(placed(
        a={"device": "CPU:0", "reason": "colocated with 'x'"}, b={"device": "CPU:0", "reason": "colocated with 'y/z'"},
        c={"device": "SIM:0", "reason": "cheaper by 3.5 ms"}, d={"device": "SIM:0", "reason": "cheaper by 1e-3 ms"}))
    assert summary["placed"] == [[2, "CPU:0", "colocated with '…'"], [2, "SIM:0", "cheaper by … ms"]]


def test_refusals_are_counted_once_a_node_by_candidate_and_reason():
    refused = [("SIM:0", "no kernel"), ("CPU:0 fast.Neg", "too few elements"), ("CPU:0 fast.Neg", "too few elements")]
    summary = placement_summary(placed(a={"device": "CPU:0", "refused": refused},
                                       b={"device": "CPU:0", "refused": refused[:1]}))
    assert summary["refused"] == [[2, "SIM:0", "no kernel"], [1, "CPU:0 fast", "too few elements"]]


def test_a_node_without_a_device_is_placed_on_nothing_with_its_error():
    error = Unimplemented("no kernel for op Neg; /usr/lib/x/libfoo.so is missing")
    summary = placement_summary(placed(a={"error": error}, b={}))
    assert summary["placed"] == [[1, "nothing", "no kernel for op Neg; libfoo.so is missing"], [1, "nothing", ""]]


def test_a_plain_mapping_and_many_reasons_have_a_bounded_summary():
    assert placement_summary({}) == {"placed": [], "kernels": [], "lost": [], "refused": []}
    many = placed(**{f"n{number}": {"device": "CPU:0", "reason": f"r{number}"} for number in range(MOST_LINES + 50)})
    assert len(placement_summary(many)["placed"]) == MOST_LINES
    table = NodeTable(bodies_of(Graph([placeholder("x", (2,)), node("y", "Neg", "x")])))
    pool = TextPool()
    assert {pool.texts[number] for number in table.columns(pool, {})["rule"]} == {""}
