"""The nodes of calls inside loops, branches and functions, found by the names of calls in a trace."""

from __future__ import annotations

from pathlib import Path

import heald
import pytest
from heald import RunMetadata, RunOptions
from heald.api import Func
from heald.graphs.graph.graph import Node
from heald_report.call_names import DEEPEST
from heald_report.node_table import Body, NodeTable, bodies_of
from heald_tools.made_up_inputs import candidate_feeds, run_first
from heald_tools.step import outputs_of

GRAPHS = Path(__file__).parents[1] / "data" / "graphs"


def traced(file):
    """The model of a file, and the trace of a run on made-up inputs."""
    model, metadata = heald.load(GRAPHS / file), RunMetadata()
    feeds = run_first(outputs_of(model), candidate_feeds([], model)).feeds
    model.session.run([*model.fetched.values()], {model.fed[name]: value for name, value in feeds.items()},
                      options=RunOptions(trace=True), metadata=metadata)
    return model, metadata.trace


@pytest.mark.parametrize("file", ["v1_while_nested.pb", "v1_while_cond_inside.pb", "v1_cond_nested.pb",
                                  "v1_while_sideeffects.pb", "v2_case.pb"])
def test_each_call_of_a_run_has_its_node(file):
    model, trace = traced(file)
    table = NodeTable(bodies_of(model.graph))
    names = [name for _, name in table.numbers]
    for event in trace.events:
        if name := event.call.node:
            number = table.number_of_name(name)
            assert number >= 0, name
            last = name.rpartition("/")[2]
            assert names[number].rpartition("/")[2] in (last, "LoopCond", "Merge", "switch_t")


def table_of(*nodes, **functions):
    """A table of a graph and of functions, each with these nodes."""
    bodies = {**functions, "": nodes}
    return NodeTable([Body(function, {made.name: made for made in nodes}) for function, nodes in bodies.items()])


def caller(name, **functions):
    return Node(name, "While", [], attrs={key: [Func(one) for one in value] if isinstance(value, list) else Func(value)
                                          for key, value in functions.items()})


@pytest.mark.parametrize(("name", "function", "found"), [
    ("a/loop/body/x/add", "f", "x/add"), ("a/loop/cond/less", "g", "less"), ("a/pick/branches_1/mul", "g2", "mul"),
    ("a/loop/body/inner/then_branch/deep", "h", "deep"), ("a/loop/x/add", "f", "x/add"), ("a/loop", "", "a/loop"),
    ("a/loop/body/x/add/made_by_a_pass", "f", "x/add"), ("a/loop/body", "", "a/loop")])
def test_a_name_leads_through_the_functions_that_it_names(name, function, found):
    table = table_of(caller("a/loop", body="f", cond="g"), caller("a/pick", branches=["f", "g2"]),
                     f=[Node("x/add", "NoOp"), caller("inner", then_branch="h")], g=[Node("less", "NoOp")],
                     g2=[Node("mul", "NoOp")], h=[Node("deep", "NoOp")])
    assert table.number_of_name(name) == table.numbers[function, found]


@pytest.mark.parametrize(("name", "found"), [
    ("m/while/While/body/m/while/add", "m/while/add"), ("m/while/While_3/cond_1/m/while/Less", "m/while/Less"),
    ("m/while/While/body/m/while/in/While/body/m/while/in/mul", "m/while/in/mul"),
    ("m/while/While", "m/while/LoopCond"), ("m/while/While/body/m/while/in/While", "m/while/in/LoopCond"),
    ("c/If/then_branch/c/sub", "c/sub"), ("c/If", "c/Merge"), ("c/Case/branch2/c/sub", "c/sub"),
    ("m/while/While/body/m/while/add/made", "m/while/add")])
def test_a_name_of_a_loop_of_tensorflow_1_is_that_of_the_graph(name, found):
    table = table_of(*(Node(made, "NoOp") for made in ("m/while/add", "m/while/Less", "m/while/LoopCond", "c/sub",
                                                       "m/while/in/mul", "m/while/in/LoopCond", "c/Merge")))
    assert table.number_of_name(name) == table.numbers["", found]


@pytest.mark.parametrize("name", ["", "/", "//", "While", "While/body/", "no/While/body/no", "f/body/" * 200 + "x",
                                  "a/" * 5000, "\x00/body/\n"])
def test_a_name_without_a_node_has_none(name):
    table = table_of(caller("f", body="f"), f=[caller("f", body="f")])
    assert table.number_of_name(name) in (-1, table.numbers["", "f"], table.numbers["f", "f"])
    assert DEEPEST > 1
