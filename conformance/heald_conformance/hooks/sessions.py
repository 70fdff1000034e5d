"""Session factories: a session of a plugin's target does what core's own session does.

The graphs hold common ops and one variable. Each case makes a session of its own, and closes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import heald
import numpy as np
from heald.api import Graph, Node, ShapeAttr, dtypes, errors

from ..case import sentence
from ..hook_subject import HookSubject, expect_raises, faults_of_threads
from ..subject import placeholder, whatever_comes
from ..verdict import expect, expect_same_bits

FLOAT = dtypes.float32
X = np.arange(4, dtype=np.float32)
MEETING = {"tensor_name": "y", "send_device": "/device:CPU:0", "send_device_incarnation": 1,
           "recv_device": "/device:CPU:0", "client_terminated": False}
METHODS: tuple[str, ...] = ("run", "make_callable", "extend", "reset", "partial_run_setup", "partial_run", "placement",
                            "partitions", "client_graph", "close")


def graph() -> Graph:
    return Graph([
        placeholder("x"), placeholder("z"), Node("y", "Mul", ["x", "x"], attrs={"T": FLOAT}),
        Node("w", "AddV2", ["y", "z"], attrs={"T": FLOAT}),
        Node("v", "VarHandleOp", attrs={"dtype": FLOAT, "shape": ShapeAttr((4,)), "shared_name": "v"}),
        Node("write", "AssignVariableOp", ["v", "x"], attrs={"dtype": FLOAT}),
        Node("read", "ReadVariableOp", ["v"], attrs={"dtype": FLOAT}),
        Node("send", "_Send", ["y"], attrs={"T": FLOAT, **MEETING}),
        Node("recv", "_Recv", attrs={"tensor_type": FLOAT, **MEETING}), placeholder("n", dtypes.int32)])


def session(on: HookSubject) -> Any:
    with whatever_comes(f"heald.Session(graph, target='{on.name}')", expected="a session", rule="session.factory"):
        opened = heald.Session(graph(), target=on.name)
    missing = [method for method in METHODS if not callable(getattr(opened, method, None))]
    expect(not missing, "the session is made", expected=", ".join(METHODS), got=f"without {missing}",
           rule="session.factory")
    return opened


@sentence()
def results_have_the_structure_of_the_fetches(on: HookSubject) -> None:
    with session(on) as opened:
        single, several = opened.run("y", {"x": X}), opened.run(["y", "x:0"], {"x": X})
        expect(isinstance(several, list), "run of a list of fetches", expected="a list", got=type(several).__name__,
               rule="session.run")
        for result, want in ((single, X * X), (several[0], X * X), (several[1], X)):
            expect(isinstance(result, np.ndarray), "run", expected="NumPy arrays", got=type(result).__name__,
                   rule="session.run")
            expect_same_bits(result, want, "run", "session.run")


@sentence()
def a_callable_takes_its_feeds_in_order(on: HookSubject) -> None:
    with session(on) as opened:
        step = opened.make_callable("w", ["z", "x"])
        expect_same_bits(step(X, 2 * X), 4 * X * X + X, "make_callable('w', ['z', 'x'])", "session.make_callable")


@sentence()
def a_released_callable_refuses_calls(on: HookSubject) -> None:
    with session(on) as opened:
        step, other = (opened.make_callable("y", ["x"]) for _ in range(2))
        step.release()
        expect_raises((errors.InvalidArgument,), lambda: step(X), "a callable after its release",
                      "session.make_callable")
        expect_same_bits(other(X), X * X, "another callable after the release", "session.make_callable")


CONNECTIONS: dict[str, tuple[dict[str, str], Callable[[Any], Any]]] = {  # w is y + z, y is x * x
    "a fed tensor": ({"z:0": "y:0"}, lambda x: x * x + x * x),
    "a computed tensor": ({"y:0": "x:0", "z:0": "x:0"}, lambda x: x + x),
    "a chain": ({"z:0": "y:0", "y:0": "x:0"}, lambda x: x + x),
}


@sentence(over=lambda _: list(CONNECTIONS))
def a_connection_puts_one_tensor_in_the_place_of_another(on: HookSubject, replaced: str) -> None:
    connections, compute = CONNECTIONS[replaced]
    with session(on) as opened:
        step = opened.make_callable("w", ["x"], connections=connections)
        expect_same_bits(step(X), compute(X), f"make_callable('w', ['x'], connections={connections})",
                         "session.connections")
        expect_same_bits(opened.run("w", {"x": X, "z": X}), X * X + X, "a run beside the callable",
                         "session.connections")


WRONG_CONNECTIONS: dict[str, dict[str, str]] = {
    "a tensor that is not there": {"z:0": "nowhere:0"},
    "a replaced tensor that is not there": {"nowhere:0": "y:0"},
    "tensors of two types": {"z:0": "n:0"},
    "a tensor that depends on itself": {"z:0": "w:0"},
    "a circle": {"z:0": "y:0", "y:0": "z:0"},
}


@sentence(over=lambda _: list(WRONG_CONNECTIONS))
def a_wrong_connection_is_a_typed_error(on: HookSubject, mistake: str) -> None:
    with session(on) as opened:
        expect_raises((errors.HealdError,),
                      lambda: opened.make_callable("w", ["x"], connections=WRONG_CONNECTIONS[mistake])(X),
                      f"a connection with {mistake}", "session.connections")
        expect_same_bits(opened.run("y", {"x": X}), X * X, "a run after a wrong connection", "session.errors")


@sentence()
def a_send_meets_the_recv_of_its_step(on: HookSubject) -> None:
    with session(on) as opened:
        for turn in range(3):
            received = opened.run("recv", {"x": X + turn}, targets=["send"])
            expect_same_bits(received, (X + turn) * (X + turn), f"the tensor of step {turn}", "session.rendezvous")


@sentence()
def a_recv_without_a_send_ends_with_its_step(on: HookSubject) -> None:
    """The send of an earlier step is no send of this one."""
    with session(on) as opened:
        opened.run([], {"x": X}, targets=["send"])
        expect_raises((errors.HealdError,), lambda: opened.run("recv", options=heald.RunOptions(timeout=0.3)),
                      "a recv without a send, with a timeout", "session.rendezvous")
        received = opened.run("recv", {"x": X}, targets=["send"])
        expect_same_bits(received, X * X, "a step after one that timed out", "session.rendezvous")


@sentence()
def steps_at_once_receive_their_own_tensors(on: HookSubject) -> None:
    with session(on) as opened:
        def work(mark: int, faults: list[Any]) -> None:
            for turn in range(on.size(30, 8)):
                x = X + 100 * mark + turn
                received = opened.run("recv", {"x": x}, targets=["send"])
                if not np.array_equal(received, x * x):
                    faults.append(received)

        faults = faults_of_threads(work)
    expect(not faults, "four threads run steps with a send and a recv", expected="no fault", got=faults[:1],
           rule="session.rendezvous")


@sentence()
def state_stays_until_it_is_reset(on: HookSubject) -> None:
    with session(on) as opened:
        opened.run([], {"x": X}, targets=["write"])
        expect_same_bits(opened.run("read"), X, "a variable in a later step", "session.state")
        opened.reset()
        expect_raises((errors.FailedPrecondition, errors.NotFound), lambda: opened.run("read"),
                      "a variable after reset", "session.state")


@sentence()
def a_session_is_extended(on: HookSubject) -> None:
    with session(on) as opened:
        opened.extend(Graph([Node("more", "Neg", ["y"], attrs={"T": FLOAT})]))
        expect_same_bits(opened.run("more", {"x": X}), -(X * X), "a node that was added", "session.extend")


@sentence()
def a_step_is_run_in_parts(on: HookSubject) -> None:
    with session(on) as opened:
        handle = opened.partial_run_setup(["y", "w"], ["x", "z"])
        first = opened.partial_run(handle, "y", {"x": X})
        second = opened.partial_run(handle, "w", {"z": X})
        expect_same_bits(first, X * X, "the first part", "session.partial_run")
        expect_same_bits(second, X * X + X, "the second part", "session.partial_run")


@sentence()
def every_node_has_a_device(on: HookSubject) -> None:
    with session(on) as opened:
        opened.run("y", {"x": X})
        placement = opened.placement()
        expect("y" in placement, "placement()", expected="an entry for each node", got=sorted(placement),
               rule="session.placement")


WRONG: dict[str, Callable[[Any], Any]] = {
    "a fetch that is not there": lambda opened: opened.run("nowhere"),
    "a feed that is not there": lambda opened: opened.run("y", {"nowhere": X}),
    "a feed that is missing": lambda opened: opened.run("y"),
    "a feed of another type": lambda opened: opened.run("y", {"x": np.array(["text"], object)}),
    "a part of no step": lambda opened: opened.partial_run("nowhere", "y"),
}


@sentence(over=lambda _: list(WRONG))
def a_mistake_is_a_typed_error(on: HookSubject, mistake: str) -> None:
    with session(on) as opened:
        expect_raises((errors.HealdError,), lambda: WRONG[mistake](opened), mistake, "session.errors")
        expect_same_bits(opened.run("y", {"x": X}), X * X, "a run after a mistake", "session.errors")


@sentence()
def a_closed_session_refuses_work(on: HookSubject) -> None:
    opened = session(on)
    opened.close()
    with whatever_comes("a second close", expected="nothing", rule="session.close"):
        opened.close()
    expect_raises((errors.HealdError,), lambda: opened.run("y", {"x": X}), "run of a closed session", "session.close")


@sentence()
def threads_run_steps_at_once(on: HookSubject) -> None:
    with session(on) as opened:
        def work(mark: int, faults: list[Any]) -> None:
            for _ in range(on.size(50, 15)):
                result = opened.run("y", {"x": X + mark})
                if not np.array_equal(result, (X + mark) * (X + mark)):
                    faults.append(result)

        faults = faults_of_threads(work)
    expect(not faults, "four threads run steps", expected="no fault", got=faults[:1], rule="session.threads")
