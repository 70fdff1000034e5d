"""Two processes run one graph, cut by Send and Recv, over a transport of their own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from itertools import count

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from builders.transfers import recv, send
from harness.pipe_transport import Wire, serve
from heald.errors import InvalidArgument, Unavailable
from heald.graphs.graph.graph import Graph
from heald.runtime.values import dtypes

X = np.float32([1, 2, 3])
steps = count(1)


def own_wire() -> Graph:
    """Send x there if p is true, and merge the answer with exp(x)."""
    return graph(placeholder("p", (), dtypes.bool_), placeholder("x"), node("sw", "Switch", "x", "p"),
                 node("checked", "CheckNumerics", "sw:1", message=b"mine"), send("there", "x", "checked"),
                 recv("back", "y"), node("else", "Exp", "sw"), node("m", "Merge", "back", "else", N=2))


def halves() -> dict[str, Graph]:
    """The other process's parts: `negate` sends back -x, `check` fails for a positive x."""
    return {"negate": graph(recv("x", "x"), node("y", "Neg", "x"), send("back", "y", "y")),
            "check": graph(recv("x", "x"), node("y", "Neg", "x"),
                           node("bad", "Log", "y"), node("c", "CheckNumerics", "bad", message=b"theirs"),
                           send("back", "y", "c"))}


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, halves), daemon=True)
    process.start()
    there.close()
    new_wire = Wire(here)
    yield new_wire
    new_wire.outgoing.put(("end", 0))
    process.join(10)
    assert process.exitcode == 0


def run(wire: Wire, half: str, feeds: dict[str, object]) -> object:
    step = next(steps)
    wire.outgoing.put((half, step, ["back"], {}))
    with heald.Session(own_wire(), rendezvous=lambda: wire.meeting(step)) as session:
        return session.run(["m:0", "m:1"], feeds, targets=["there"])


def outcome(wire: Wire) -> str:
    what, _, text = wire.requests.get(timeout=60)
    assert what == "done"
    return str(text)


def test_a_tensor_goes_there_and_back(wire):
    for _ in range(3):
        m, index = run(wire, "negate", {"p": True, "x": X})
        assert (m.tolist(), index) == ((-X).tolist(), 0)
        assert outcome(wire) == "ok"


def test_a_dead_tensor_goes_there_and_back(wire):
    m, index = run(wire, "negate", {"p": False, "x": X})
    np.testing.assert_allclose(m, np.exp(X), 1e-6)
    assert index == 1
    assert outcome(wire) == "ok"


def test_an_error_there_ends_the_step_here(wire):
    with pytest.raises(InvalidArgument, match="theirs"):
        run(wire, "check", {"p": True, "x": X})
    assert outcome(wire).startswith("InvalidArgument")


def test_an_error_here_ends_the_step_there(wire):
    with pytest.raises(InvalidArgument, match="mine"):
        run(wire, "negate", {"p": True, "x": np.float32([np.inf])})
    assert "mine" in outcome(wire)


def test_a_process_that_ends_ends_the_step_here():
    here, there = multiprocessing.Pipe()
    lone = Wire(here)
    there.close()
    with (heald.Session(own_wire(), rendezvous=lambda: lone.meeting(1)) as session,
          pytest.raises(Unavailable, match="the other process has ended")):
        session.run("back:0", {"p": True, "x": X})
