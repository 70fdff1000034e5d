"""A step that is cancelled at any point, in any wait, leaves no waiter, thread, task or tensor.

The seeded work queue draws the moment of the cancellation among the tasks that drive the step. The kernels of the graph
give further moments.
"""

from __future__ import annotations

import gc
import threading
import weakref
from functools import partial

import heald
import numpy as np
import pytest
from builders.control_flow import branch, call, function, loop
from builders.graphs import FLOAT, const, node, placeholder
from builders.transfers import recv, send
from harness.garbage import left_over
from heald.errors import Cancelled
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.executor.step import RunOptions, Step
from heald.runtime.host.cancellation import CancelToken
from heald.runtime.host.host import Host
from heald.runtime.host.rendezvous import LocalRendezvous
from heald.runtime.values import dtypes
from heald.runtime.values.async_value import AsyncValue
from heald_cpu.resources.queue import Request
from plugins_for_tests.acting_plugin import CONFIG, acts, ran

pytestmark = pytest.mark.usefixtures("quick_collections")
X = np.float32([1, 2, 3])
SEEDS = range(12)


def transfers() -> Graph:
    """x + 4, over a Send and a Recv."""
    return Graph([placeholder("x", (3,)), node("a", "Act>Act", "x"), send("s", "t", "a"), recv("r", "t"),
                  node("b", "Act>ActNow", "r"), node("c", "Act>Act", "b"), node("y", "Act>Act", "c")])


def queues() -> Graph:
    """x + 4, over a queue."""
    queue = Node("q", "FIFOQueueV2", attrs={"component_types": (FLOAT,), "shapes": (), "capacity": 1})
    lists = {"Tcomponents": (FLOAT,)}, {"component_types": (FLOAT,)}
    return Graph([placeholder("x", (3,)), queue, node("a", "Act>Act", "x"),
                  Node("s", "QueueEnqueueV2", ["q", "a"], attrs=lists[0]),
                  Node("r", "QueueDequeueV2", ["q"], attrs=lists[1]), node("b", "Act>ActNow", "r"),
                  node("c", "Act>Act", "b"), node("y", "Act>Act", "c")])


def calls(how: str = "call") -> Graph:
    """x + 4, in a function that receives: a call, which is inlined, or a branch."""
    body = function("body", "v", [recv("r", "t", "^w"), node("w", "Act>Act", "v"), node("b", "Act>Act", "r:tensor:0")],
                    {"y": "b:y:0"})
    other = function("other", "v", [node("n", "Neg", "v")], {"y": "n:y:0"})
    as_call, as_branch = call("f", "body", "x", arguments="v"), branch("f", "p", "body", "other", "x", arguments="v")
    called = as_call if how == "call" else as_branch
    return Graph([placeholder("x", (3,)), placeholder("p", (), dtypes.bool_), node("a", "Act>Act", "x"),
                  node("a2", "Act>Act", "a"), send("s", "t", "a2"), called, node("y", "Act>Act", "f")],
                 functions=[body, other])


def loops() -> Graph:
    """x + 4, in a loop that sends and receives in each of its turns."""
    cond = function("cond", "i:int32 v", [const("n", 2, np.int32),
                                          node("t", "Less", "i", "n:output:0", T=dtypes.int32)],
                    {"go": "t:z:0"}, "go:bool_")
    body = function("body", "i:int32 v", [
        const("one", 1, np.int32), node("j", "AddV2", "i", "one:output:0", T=dtypes.int32), node("w", "Act>Act", "v"),
        send("s", "t", "w:y:0"), recv("r", "t"), node("b", "Act>ActNow", "r:tensor:0")],
        {"i_out": "j:z:0", "v_out": "b:y:0"}, "i_out:int32", effects=["s"])
    return Graph([placeholder("x", (3,)), const("zero", 0, np.int32),
                  loop("loop", "cond", "body", "zero", "x", arguments="i:int32 v"), node("y", "Identity", "loop:1")],
                 functions=[cond, body])


GRAPHS = {"Recv": (transfers, ["s"]), "queue": (queues, ["s"]), "call": (calls, ["s"]),
          "If": (partial(calls, "If"), ["s"]), "While": (loops, [])}
P = np.bool_(True)  # fed where the graph has a predicate


def predicate(test_graph: Graph) -> dict[str, object]:
    return {"p": P} if "p" in test_graph else {}


@pytest.fixture(autouse=True)
def _forget():
    acts.clear()
    ran.clear()
    yield
    acts.clear()
    ran.clear()


class Watch:
    """A session whose runs are looked at."""

    def __init__(self, test_graph: Graph, seed: int) -> None:
        self.meetings: list[weakref.ref[LocalRendezvous]] = []
        self.session = heald.Session(test_graph, CONFIG | {"work_queue": {"name": "seeded", "seed": seed}},
                                     rendezvous=self._meet)
        self.host = self.session.host
        self.threads, self.steps = threading.active_count(), live_steps(self.host)
        self.tensors: list[weakref.ref[np.ndarray]] = []

    def _meet(self) -> LocalRendezvous:
        test_graph = LocalRendezvous()
        self.meetings.append(weakref.ref(test_graph))
        return test_graph

    def feeds(self) -> dict[str, object]:
        x = X.copy()
        self.tensors.append(weakref.ref(x))
        return {"x": x} | predicate(self.session.graph)

    def check_nothing_is_left(self) -> None:
        self.host.work_queue.quiesce(10)
        assert left_over([self.host]) == []
        assert live_steps(self.host) == self.steps  # no token keeps a run
        assert waiting() == []
        assert [reference() for reference in (*self.meetings, *self.tensors) if reference() is not None] == []
        assert threading.active_count() == self.threads


def live_steps(host: Host) -> int:
    return sum(isinstance(step, Step) and step.host is host for step in gc.get_objects())


def waiting() -> list[object]:
    """Requests in queues, and values that are pending."""
    return [gc_object for gc_object in gc.get_objects() if isinstance(gc_object, Request)
            or (isinstance(gc_object, AsyncValue) and not gc_object.is_available())]


def points(test_graph: Graph, targets: list[str]) -> list[str]:
    """The nodes whose kernels an undisturbed run begins, in order."""
    ran.clear()
    with heald.Session(test_graph, CONFIG) as session:
        assert session.run("y", {"x": X} | predicate(test_graph), targets=targets).tolist() == (X + 4).tolist()
    visited = [*ran]
    ran.clear()
    return visited


def _cancel_at(number: int, token: CancelToken) -> None:
    """Cancel when the kernel that has just begun is number `number` of the run."""
    if len(ran) == number:
        token.cancel()


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_run_that_is_cancelled_in_any_kernel_leaves_nothing(kind):
    make, targets = GRAPHS[kind]
    nodes = points(make(), targets)
    assert len(nodes) in (4, 5)
    for number in range(1, len(nodes) + 1):
        watch, token = Watch(make(), number), CancelToken()
        with watch.session as session:
            ran.clear()
            acts.update(dict.fromkeys(nodes, partial(_cancel_at, number, token)))
            with pytest.raises(Cancelled):
                session.run("y", watch.feeds(), targets=targets, options=RunOptions(cancel=token))
            assert len(ran) == number
            acts.clear()
            watch.check_nothing_is_left()


@pytest.mark.parametrize("kind", ["Recv", "queue", "call", "If"])
def test_a_run_that_is_cancelled_while_it_waits_leaves_nothing(kind):
    """Without the Send, or the enqueue, the step waits for ever: the queue then runs the task that cancels it."""
    make, _ = GRAPHS[kind]
    watch, token = Watch(make(), 1), CancelToken()
    with watch.session as session:
        watch.host.work_queue.add_task(token.cancel)
        with pytest.raises(Cancelled):
            session.run("y", watch.feeds(), options=RunOptions(cancel=token))
        watch.check_nothing_is_left()


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_partial_run_whose_session_closes_between_any_two_tasks_leaves_nothing(kind):
    make, targets = GRAPHS[kind]
    outcomes = set()
    for seed in SEEDS:
        watch = Watch(make(), seed)
        session = watch.session
        feeds = watch.feeds()
        handle = session.partial_run_setup("y", [*feeds], targets)
        watch.host.work_queue.add_task(session.close)
        try:
            outcomes.add(tuple(session.partial_run(handle, "y", feeds)))
        except Cancelled:
            outcomes.add("cancelled")
        session.close()
        del feeds
        watch.check_nothing_is_left()
    assert outcomes == {"cancelled", tuple(X + 4)}
