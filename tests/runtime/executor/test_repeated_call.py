"""Loops keep one frame for all turns. A turn ends at its error, a cancellation and an interrupt, as a run does."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.control_flow import function, loop, program
from builders.graphs import FLOAT, const, node, placeholder
from heald.errors import Cancelled, PluginError
from heald.graphs.graph.attr_value import Func
from heald.graphs.graph.graph import Node
from heald.runtime.executor.step import RunOptions, Step
from heald.runtime.host.cancellation import CancelToken
from heald.runtime.values import dtypes
from plugins_for_tests.acting_plugin import CONFIG, acts, ran

BELOW = function("below", "i x", [const("end", 5), node("test", "Less", "i", "end:output:0")], {"go": "test:z:0"},
                 results="go:bool_")
BODIES = {length: function("body", "i x", [
    const("one", 1), node("next", "AddV2", "i", "one:output:0"),
    *(node(f"n{number}", "Act>Act", f"n{number - 1}:y:0" if number else "x") for number in range(length))],
    {"i": "next:z:0", "x": f"n{length - 1}:y:0"}) for length in (1, 3)}
START = [placeholder("i", ()), placeholder("x", (2,))]
FEEDS = {"i": 2, "x": [1, 2]}


@pytest.fixture(autouse=True)
def _forget():
    for memory in (acts, ran):
        memory.clear()
    yield
    for memory in (acts, ran):
        memory.clear()


def while_session(length):
    return heald.Session(program([*START, loop("w", "below", "body", "i", "x")], BELOW, BODIES[length]), CONFIG)


def for_session():
    body = function("body", "i:int32 x", [node("n0", "Act>Act", "x"), node("n1", "Act>Act", "n0:y:0")],
                    {"x": "n1:y:0"})
    numbers = [const(name, value, np.int32) for name, value in (("a", 0), ("b", 3), ("d", 1))]
    nodes = [START[1], *numbers, Node("w", "For", ["a", "b", "d", "x"], attrs={"T": (FLOAT,), "body": Func("body")})]
    return heald.Session(program(nodes, body), CONFIG)


class Linked:
    """The executable of a session's step, with the idle frames of all its functions."""

    def __init__(self, session, fetch, feeds):
        self.executable = session.prepare(fetch, [*feeds]).executable()
        self._session, self._feeds = session, [np.float32(value) for value in feeds.values()]

    def run(self, token=None):
        step = Step(self._session.host, parents=() if token is None else (token,), ends_at_error=True)
        return self.executable.run(self._feeds, step)[0].tolist()

    def idle_frames(self):
        return [len(inner.autotuner.schedule.frames) for inner in self.executable.with_callees()]


@pytest.mark.parametrize("length", BODIES)
def test_the_turns_of_a_loop_share_one_frame(length):
    with while_session(length) as session:
        linked = Linked(session, "w:1", FEEDS)
        for _ in range(3):
            assert linked.run() == [1 + 3 * length, 2 + 3 * length]
        assert linked.idle_frames() == [1, 1, 1]


@pytest.mark.parametrize(("error", "raised"), [(ValueError, PluginError), (KeyboardInterrupt, KeyboardInterrupt)])
@pytest.mark.parametrize("length", BODIES)
def test_the_run_behind_a_turn_that_failed_is_right(length, error, raised):
    def fail():
        if len(ran) > length:  # in the second turn
            raise error("stop")

    with while_session(length) as session:
        linked = Linked(session, "w:1", FEEDS)
        acts["w/body/n0"] = fail
        with pytest.raises(raised) as caught:
            linked.run()
        assert len(ran) == length + 1
        assert getattr(caught.value, "node", "w/body/n0") == "w/body/n0"
        acts.clear()
        assert linked.run() == [1 + 3 * length, 2 + 3 * length]
        assert max(linked.idle_frames()) == 1


@pytest.mark.parametrize("is_for", [False, True])
def test_turns_with_effects_share_one_frame_too(is_for):
    """The chain behind the results of such a body is ready as soon as the body has returned."""
    arguments = "n:int32 v:resource x" if is_for else "i v:resource x"
    adds = Node("add", "AssignAddVariableOp", ["v", "x"], attrs={"dtype": FLOAT})
    read = Node("read", "ReadVariableOp", ["v"], controls=["add"], attrs={"dtype": FLOAT})
    counts = [] if is_for else [const("one", 1), node("next", "AddV2", "i", "one:output:0")]
    body = function("body", arguments, [*counts, adds, read],
                    ({} if is_for else {"i": "next:z:0"}) | {"v": "v", "x": "read:value:0"},
                    results="v:resource", effects=["add"])
    below = function("below", "i v:resource x", BELOW.nodes.values(), BELOW.ret, results="go:bool_")
    handle = {"dtype": FLOAT, "shape": (2,), "container": "", "shared_name": "sum"}
    nodes = [*START, Node("v", "VarHandleOp", attrs=handle),
             Node("init", "AssignVariableOp", ["v", "x"], attrs={"dtype": FLOAT})]
    types = (dtypes.resource, FLOAT) if is_for else (FLOAT, dtypes.resource, FLOAT)
    if is_for:
        nodes += [const(name, value, np.int32) for name, value in (("a", 0), ("b", 3), ("d", 1))]
        nodes.append(Node("w", "For", ["a", "b", "d", "v", "x"], attrs={"T": types, "body": Func("body")}))
    else:
        attrs = {"T": types, "cond": Func("below"), "body": Func("body")}
        nodes.append(Node("w", "While", ["i", "v", "x"], attrs=attrs))
    fetch = "w:1" if is_for else "w:2"
    with heald.Session(program(nodes, body, *([] if is_for else [below]))) as session:
        session.run([], FEEDS, targets=["init"])
        linked = Linked(session, fetch, {"x": [1, 2]} if is_for else FEEDS)
        assert linked.run() == [8, 16]
        assert linked.run() == [36, 72]
        assert max(linked.idle_frames()) == 1
        assert not any(inner.is_asynchronous for inner in linked.executable.with_callees())


@pytest.mark.parametrize("length", BODIES)
def test_no_kernel_of_a_turn_begins_once_the_token_is_cancelled(length):
    token = CancelToken()
    with while_session(length) as session:
        acts["w/body/n0"] = token.cancel
        with pytest.raises(Cancelled):
            session.run("w:1", FEEDS, options=RunOptions(cancel=token))
        assert ran == ["w/body/n0"]
        acts.clear()
        assert session.run("w:1", FEEDS).tolist() == [1 + 3 * length, 2 + 3 * length]


def test_a_for_ends_within_a_turn_and_runs_again():
    token = CancelToken()
    with for_session() as session:
        linked = Linked(session, "w", {"x": [1, 2]})
        acts["w/body/n0"] = token.cancel
        with pytest.raises(Cancelled):
            linked.run(token)
        assert ran == ["w/body/n0"]
        acts.clear()
        assert linked.run() == [7, 8]
        assert linked.idle_frames() == [1, 1]


def test_the_small_variables_that_a_frame_copies_are_new_in_each_turn():
    """Three consumers make a copied feed of the argument x."""
    body = function("body", "i x", [
        const("one", 1), node("next", "AddV2", "i", "one:output:0"), node("a", "AddV2", "x", "x"),
        node("b", "Mul", "x", "x"), node("c", "Sub", "a:z:0", "b:z:0"), node("d", "AddV2", "c:z:0", "x")],
        {"i": "next:z:0", "x": "d:z:0"})
    expected = 0.5
    for _ in range(3):
        expected = 3 * expected - expected * expected
    with heald.Session(program([*START, loop("w", "below", "body", "i", "x")], BELOW, body)) as session:
        assert session.run("w:1", {"i": 2, "x": [0.5, 0]}).tolist() == [expected, 0]


def test_a_loop_that_ends_before_its_first_turn_returns_copies_of_its_feeds():
    x = np.float32([1, 2])
    with while_session(1) as session:
        result = session.run("w:1", {"i": 9, "x": x})
        result[:] = 7
    assert x.tolist() == [1, 2]


def test_a_dead_value_of_a_turn_leaves_the_loop():
    """The Switch of the body gives dead values, so each turn is a run of its own."""
    below = function("b", "x p:bool_", [const("end", 9), node("test", "Less", "x", "end:output:0")],
                     {"go": "test:z:0"}, results="go:bool_")
    body = function("s", "x p:bool_", [
        node("s", "Switch", "x", "p"), node("no", "Neg", "s:output_false:0"),
        node("yes", "AddV2", "s:output_true:0", "s:output_true:0"),
        Node("m", "Merge", ["no:y:0", "yes:z:0"], attrs={"T": FLOAT, "N": 2})],
        {"x": "m:output:0", "p": "p"}, results="p:bool_")
    nodes = [placeholder("x", ()), placeholder("p", (), dtypes.bool_),
             loop("w", "b", "s", "x", "p", arguments="x p:bool_")]
    with heald.Session(program(nodes, below, body)) as session:
        assert session.run("w:0", {"x": 3, "p": True}) == 12
