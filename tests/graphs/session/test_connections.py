"""Tensor connections of callables: one tensor takes the place of another within the step."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald.errors import FailedPrecondition, HealdError, InvalidArgument, NotFound
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

X = np.float32([1, -2, 3])


@pytest.fixture
def session():
    attrs = {"dtype": FLOAT, "shape": ShapeAttr((3,)), "shared_name": b"v", "container": b""}
    nodes = [placeholder("x", (3,)), placeholder("i", (3,), dtypes.int32), placeholder("p", (3,)),
             node("a", "Neg", "x"), node("y", "Mul", "p", "p"), node("z", "AddV2", "y", "a"), const("c", [5, 5, 5]),
             node("d", "Neg", "c"), Node("after", "Neg", ["c"], controls=["p"], attrs={"T": FLOAT}),
             Node("v", "VarHandleOp", attrs=attrs),
             Node("set", "AssignVariableOp", ["v", "p"], attrs={"dtype": FLOAT}),
             Node("get", "ReadVariableOp", ["v"], attrs={"dtype": FLOAT})]
    with heald.Session(graph(*nodes)) as session:
        yield session


@pytest.mark.parametrize(("fetch", "connections", "expected"), [
    ("y", {"p": "a"}, X * X),
    ("y", {"p:0": "a:0"}, X * X),
    ("z", {"p": "x"}, X * X - X),
    ("p", {"p": "a"}, -X),  # the fetched tensor is the other one
    ("d", {"c": "a"}, X),  # a constant is replaced, too
    ("after", {"p": "a"}, np.float32([-5] * 3)),
    ("y", {"p": "c", "c": "a"}, X * X),  # a chain
    ("z", {"p": "a", "a": "c"}, np.float32([30] * 3)),
])
def test_a_tensor_takes_the_place_of_another(session, fetch, connections, expected):
    step = session.make_callable(fetch, ["x"], connections=connections)
    for _ in range(2):
        assert step(X).tolist() == expected.tolist()
    with pytest.raises(InvalidArgument, match="must feed"):
        session.run("y", {"x": X})  # other steps go on as they were
    assert session.run("d").tolist() == [-5] * 3
    step.release()
    with pytest.raises(InvalidArgument, match="released"):
        step(X)


def test_targets_of_a_connected_step_write_the_sessions_state(session):
    session.make_callable([], ["x"], ["set"], connections={"p": "a"})(X)
    assert session.run("get").tolist() == (-X).tolist()
    session.make_callable([], [], ["set"], connections={"p": "get"})()
    assert session.run("get").tolist() == (-X).tolist()


@pytest.mark.parametrize(("connections", "feeds", "error", "text"), [
    ({"p": "gone"}, ["x"], NotFound, "gone"),
    ({"gone": "a"}, ["x"], NotFound, "gone"),
    ({"p": "a:3"}, ["x"], InvalidArgument, "a:3"),
    ({"p": "i"}, ["i"], InvalidArgument, "type float32 and 'i' of type int32"),
    ({"p": "v"}, ["x"], InvalidArgument, "'v' is a resource"),
    ({"p": "p"}, ["x"], InvalidArgument, "in a circle"),
    ({"p": "a", "a": "p"}, ["x"], InvalidArgument, "in a circle"),
    ({"p": "a", "p:0": "x"}, ["x"], InvalidArgument, "connected more than once"),
    ({"p": "y"}, ["x"], InvalidArgument, "takes itself"),
    ({"p": "z"}, ["x"], InvalidArgument, "cycle"),
    ({"p": "a"}, ["x", "p"], InvalidArgument, "fed more than once"),
    ({"p": "set"}, ["x"], InvalidArgument, "no outputs"),
    ([("p", "a")], ["x"], InvalidArgument, "connections"),
    ({"p": 3}, ["x"], InvalidArgument, "a fetch is a int"),
    ({3: "a"}, ["x"], InvalidArgument, "a feed is a int"),
])
def test_connections_that_do_not_fit_are_errors(session, connections, feeds, error, text):
    with pytest.raises(error, match=text):
        session.make_callable("y", feeds, connections=connections)
    assert session.run("y", {"p": X}).tolist() == (X * X).tolist()


def test_a_connected_step_lives_through_extension_and_reset_and_ends_with_the_session(session):
    step = session.make_callable("y", ["x"], connections={"p": "a"})
    session.extend(graph(node("w", "Neg", "y")))
    session.reset()
    assert step(X).tolist() == (X * X).tolist()
    assert session.make_callable("w", ["x"], connections={"p": "a"})(X).tolist() == (-X * X).tolist()
    session.close()
    with pytest.raises(FailedPrecondition, match="closed"):
        step(X)
    with pytest.raises(HealdError, match="closed"):
        session.make_callable("y", ["x"], connections={"p": "a"})
