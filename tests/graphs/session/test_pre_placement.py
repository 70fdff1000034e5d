"""Passes of the stage "pre_placement": they see a session's whole graph and its initial state, once per session."""

import sys

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald import errors
from heald.runtime.contract.loader import Initializer

EARLY = """
from heald.api import hookimpl
HEALD_API = (1, 0)
seen = []

def early(graph, context):
    seen.append((sorted(graph.nodes), context.kept, [each.target for each in context.initial_state]))
    return graph.replace(nodes=[graph["y"].replace(op="Neg")], without=["assign"])

@hookimpl
def heald_passes(registry):
    registry.add("early", early, stage="pre_placement")
"""


@pytest.fixture
def early(tmp_path, monkeypatch):
    (tmp_path / "early_pass.py").write_text(EARLY)
    monkeypatch.syspath_prepend(tmp_path)
    yield {"plugins": {"load": ["early_pass"]}}
    sys.modules.pop("early_pass", None)


def test_a_pass_before_placement_sees_the_whole_graph_once(early):
    nodes = graph(placeholder("x", (2,)), node("y", "Abs", "x"), const("other", [1.0]), node("assign", "NoOp"))
    state = [Initializer(frozenset({"x"}), "assign")]
    with heald.Session(nodes, early, initial_state=state) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run("y", {"x": [1, -2]}), [-1, 2])
        np.testing.assert_array_equal(session.run("other"), [1])
        assert sys.modules["early_pass"].seen == [(["assign", "other", "x", "y"], frozenset(), ["assign"])]
        assert session.graph["y"].op == "Neg"


def test_a_disabled_pass_before_placement_does_not_run(early):
    nodes = graph(placeholder("x", (2,)), node("y", "Abs", "x"), node("assign", "NoOp"))
    with heald.Session(nodes, early | {"passes": {"disable": ["early"]}}) as session:
        np.testing.assert_array_equal(session.run("y", {"x": [1, -2]}), [1, 2])


ASKING = """
from heald.api import hookimpl
HEALD_API = (1, 0)

def asking(graph, context):
    for each in context.initial_state:
        each.values()
    raise ValueError("its own fault")

@hookimpl
def heald_passes(registry):
    registry.add("asking", asking, stage="pre_placement")
"""


def test_values_that_cannot_be_read_are_no_fault_of_the_pass_that_asks_for_them(tmp_path, monkeypatch):
    def read_damaged_file():
        raise errors.DataLoss("the file is damaged")

    (tmp_path / "asking_pass.py").write_text(ASKING)
    monkeypatch.syspath_prepend(tmp_path)
    nodes, config = graph(placeholder("x", (2,))), {"plugins": {"load": ["asking_pass"]}}
    with pytest.raises(errors.DataLoss, match="the file is damaged"):
        heald.Session(nodes, config, initial_state=[Initializer(frozenset({"x"}), "x", read_damaged_file)])
    with pytest.raises(errors.PluginError, match=r"pass 'asking' of plugin asking_pass raised .*its own fault"):
        heald.Session(nodes, config)
    sys.modules.pop("asking_pass")


SKIPPING = """
from heald.api import hookimpl
HEALD_API = (1, 0)

def skip(graph, context):
    return graph.replace(nodes=[graph["b"].replace(inputs=graph["a"].inputs)], without=["a"])

@hookimpl
def heald_passes(registry):
    registry.add("skip", skip, stage="pre_placement")
"""


def test_a_pass_before_placement_may_remove_a_partner_of_colocation(tmp_path, monkeypatch):
    (tmp_path / "skipping_pass.py").write_text(SKIPPING)
    monkeypatch.syspath_prepend(tmp_path)
    nodes = graph(placeholder("x", (2,)), node("a", "Identity", "x", device="EXAMPLE:0"), node("b", "Neg", "a"),
                  node("z", "Neg", "b", _class=[b"loc:@a"]))
    with heald.Session(nodes, {"plugins": {"load": ["skipping_pass"]}}) as session:
        np.testing.assert_array_equal(session.run("z", {"x": [1, -2]}), [1, -2])
        assert {row["node"]: row["assigned"] for row in session.placement().table()}["z"] == "EXAMPLE:0"
    sys.modules.pop("skipping_pass", None)
