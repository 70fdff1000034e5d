"""Iterators that nothing starts: a step that needs one is told the tensors to feed."""

from __future__ import annotations

from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, node
from heald.errors import FailedPrecondition, Unimplemented
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

KINDS: dict[str, Any] = {"output_types": (FLOAT, dtypes.int64), "output_shapes": (ShapeAttr((2,)), ShapeAttr(()))}
MADE = {"shared_name": b"", "container": b""}
MODEL = graph(
    const("rows", [[1, 2], [3, 4]]), const("labels", [0, 1], np.int64),
    Node("data", "TensorSliceDataset", ("rows", "labels"), attrs={
        "Toutput_types": KINDS["output_types"], "output_shapes": KINDS["output_shapes"]}),
    Node("iterator", "IteratorV2", attrs=KINDS | MADE), Node("init", "MakeIterator", ("data", "iterator")),
    Node("next", "IteratorGetNext", ("iterator",), attrs=KINDS), node("y", "Neg", "next:0"),
    node("label", "Neg", "next:1", T=dtypes.int64),
)


@pytest.fixture
def session():
    with heald.Session(MODEL) as session:
        yield session


def test_a_step_that_needs_an_iterator_is_told_the_tensors_to_feed(session):
    with pytest.raises(FailedPrecondition, match=r"not been initialized.*MakeIterator .*feed 'next:0'") as caught:
        session.run("y")
    assert (caught.value.node, caught.value.op) == ("next", "IteratorGetNext")


def test_no_feed_is_named_for_a_node_whose_outputs_are_no_handles():
    nodes = graph(const("x", 1), node("none", "CheckPinned", "x"), node("y", "Neg", "none"))
    with heald.Session(nodes) as session, pytest.raises(Unimplemented, match="no kernel for op") as caught:
        session.run("y")
    assert "feed" not in caught.value.hint


def test_a_step_that_is_fed_the_iterators_outputs_needs_no_iterator(session):
    assert session.run("y", {"next:0": [5, 6]}).tolist() == [-5, -6]
    results = session.run(["y", "label"], {"next:0": [5, 6], "next:1": 7})
    assert [x.tolist() for x in results] == [[-5, -6], -7]


def test_a_step_that_is_fed_one_of_two_outputs_needs_the_iterator(session):
    with pytest.raises(FailedPrecondition, match="not been initialized"):
        session.run(["y", "label"], {"next:0": [5, 6]})
    session.run([], targets=["init"])
    y, label = session.run(["y", "label"], {"next:0": [5, 6]})
    assert (y.tolist(), label.tolist()) == ([-5, -6], 0)


def test_a_model_has_the_elements_of_an_iterator_as_inputs_if_its_outputs_do_not_start_it(tmp_path):
    heald.graphdef.dump(MODEL, tmp_path / "frozen.pb")
    assert [*heald.load(tmp_path / "frozen.pb", outputs=["y"]).inputs] == ["next:0"]
    start = MODEL["next"].replace(controls=("init",))
    heald.graphdef.dump(MODEL.replace(nodes=[start]), tmp_path / "frozen.pb")
    model = heald.load(tmp_path / "frozen.pb", outputs=["y"])
    assert not model.inputs
    assert model().tolist() == [-1, -2]
