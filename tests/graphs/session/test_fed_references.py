"""Feeds in the place of reference variables: readers take the value, changes refuse it, as in TensorFlow."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald.errors import InvalidArgument
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

X, FED = np.float32([1, 2, 3]), np.float32([7, 7, 7])


@pytest.fixture
def session():
    attrs = {"dtype": FLOAT, "shape": ShapeAttr((3,)), "shared_name": b"", "container": b""}
    nodes = [placeholder("x", (3,)), Node("v", "VariableV2", attrs=attrs), node("set", "Assign", "v", "x"),
             node("add", "AssignAdd", "v", "x"), node("after", "Neg", "set"), node("twice", "AssignAdd", "set", "x"),
             const("i", 0, np.int32), const("one", 5), node("read", "Identity", "v"), node("z", "Neg", "read"),
             Node("scatter", "ScatterAdd", ["v", "i", "one"], attrs={"T": FLOAT, "Tindices": dtypes.int32}),
             Node("late", "Neg", ["x"], controls=["set"], attrs={"T": FLOAT}),
             Node("moved", "RefIdentity", ["v"], attrs={"T": FLOAT})]
    with heald.Session(graph(*nodes)) as session:
        session.run("set", {"x": X})
        yield session


@pytest.mark.parametrize(("fetch", "fed", "refused"), [
    ("set", "v", "set"), ("add", "v:0", "add"), ("scatter", "v", "scatter"), ("after", "v", "set"),
    ("late", "v", "set"), ("twice", "set", "twice"), ("moved", "v", "moved"),
])
def test_a_node_that_takes_a_reference_refuses_a_fed_value(session, fetch, fed, refused):
    for run in (lambda: session.run(fetch, {fed: FED, "x": X}), lambda: session.make_callable(fetch, [fed, "x"]),
                lambda: session.run([], {fed: FED, "x": X}, targets=[fetch]),
                lambda: session.partial_run_setup(fetch, [fed, "x"])):
        with pytest.raises(InvalidArgument, match="is a reference to a variable, and .* is fed") as caught:
            run()
        assert caught.value.node == refused
    assert session.run("v").tolist() == X.tolist()


@pytest.mark.parametrize(("fetch", "fed", "expected"), [
    ("z", "v", -FED), ("z", "read", -FED), ("after", "set", -FED), ("v", "v", FED), ("set", "set", FED),
    ("set", "read", X),
])
def test_readers_take_a_fed_value_and_the_variable_stays(session, fetch, fed, expected):
    assert session.run(fetch, {fed: FED, "x": X}).tolist() == expected.tolist()
    assert session.run("v").tolist() == X.tolist()
