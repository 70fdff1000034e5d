"""Partial runs: a step is fed and fetched in several calls. TensorFlow 2.21 refuses the same calls."""

from __future__ import annotations

import gc
import os
import threading
from contextlib import ExitStack
from itertools import permutations

import heald
import numpy as np
import pytest
from builders.control_flow import function, loop
from builders.graphs import const, graph, node, placeholder
from harness.threads import in_threads
from heald.errors import Cancelled, FailedPrecondition, HealdError, InvalidArgument, NotFound, Unimplemented
from heald.graphs.graph.graph import Graph
from heald.graphs.session.partial_run import PartialStep
from heald.runtime.host.rendezvous import LocalRendezvous
from heald.runtime.values import dtypes
from plugins_for_tests.acting_plugin import CONFIG, acts, ran

QUEUES = ["multi_threaded", "single_threaded", "seeded"]
X = np.float32([1, 2, 3])
RUNS = min(1000, int(os.environ.get("HEALDTEST_GRAPHS", "400")) // 4)  # of each thread; `make slow` does 1000


@pytest.fixture(autouse=True)
def _forget():
    acts.clear()
    ran.clear()
    yield
    acts.clear()
    ran.clear()


def chain():
    """r1 = a + b, r2 = r1 * c, and an addition of 1 behind each."""
    return graph(*(placeholder(name) for name in "abc"), node("r1", "AddV2", "a", "b"), node("n1", "Act>Act", "r1"),
                 node("r2", "Mul", "r1", "c"), node("n2", "Act>Act", "r2"))


def make_session(queue="multi_threaded"):
    return heald.Session(chain(), CONFIG | {"work_queue": {"name": queue}})


@pytest.mark.parametrize("queue", QUEUES)
def test_each_call_feeds_and_fetches_a_part_and_each_node_runs_once(queue):
    with make_session(queue) as session:
        for _ in range(3):
            handle = session.partial_run_setup(["n1:0", "r2", "n2:0"], ["a", "b:0", "c"])
            assert session.partial_run(handle, [], {"a:0": X}) == []
            assert session.partial_run(handle, {"first": "n1"}, {"b": 1})["first"].tolist() == [3, 4, 5]
            assert session.partial_run(handle, "r2:0", {"c": [2, 2, 2]}).tolist() == [4, 6, 8]
            assert session.partial_run(handle, ("n2",))[0].tolist() == [5, 7, 9]
    assert sorted(ran) == sorted(["n1", "n2"] * 3)


def test_the_last_feed_ends_a_run_whose_fetches_are_done():
    with make_session() as session:
        handle = session.partial_run_setup("r1:0", ["a", "b", "c"])
        assert session.partial_run(handle, "r1:0", {"a": 1, "b": 2}) == 3
        session.partial_run(handle, [], {"c": 1})
        with pytest.raises(InvalidArgument, match="there is no partial run"):
            session.partial_run(handle, [])


def test_targets_have_run_when_the_last_call_returns():
    with make_session() as session:
        handle = session.partial_run_setup([], ["a", "b", "c"], targets=["n2"])
        session.partial_run(handle, [], {"a": 1, "b": 2})
        assert ran == []
        session.partial_run(handle, [], {"c": 1})
        assert ran == ["n2"]


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_feeds_come_in_any_order(order):
    values = {"a": 2, "b": 3, "c": 4}
    with make_session() as session:
        handle = session.partial_run_setup(["r1", "r2"], ["a", "b", "c"])
        for name in order:
            session.partial_run(handle, [], {name: values[name]})
        assert session.partial_run(handle, ["r2", "r1"]) == [20, 5]


REFUSED = {
    "unknown feed": (["r1"], {"z": 1}, NotFound, "no node is called 'z'"),
    "unknown fetch": (["z"], {}, NotFound, "no node is called 'z'"),
    "feed not in the setup": ([], {"r1": 1}, InvalidArgument, "the feed 'r1' was not specified in partial_run_setup"),
    "fetch not in the setup": (["n2"], {}, InvalidArgument, "the fetch 'n2' was not specified in partial_run_setup"),
    "fed before": ([], {"a": 1}, InvalidArgument, "the feed 'a' has already been fed"),
    "fetched before": (["r1"], {}, InvalidArgument, "the fetch 'r1' has already been fetched"),
    "fed twice at once": ([], {"c": 1, "c:0": 1}, InvalidArgument, "'c:0' is fed more than once"),
    "without a feed": (["r2"], {}, InvalidArgument, r"'r2' can't be computed .* you must feed a value for 'c:0' first"),
    "of another shape": (["r2"], {"c": [1, "x"]}, InvalidArgument, "feed 'c'"),
}


@pytest.mark.parametrize(("fetches", "feeds", "kind", "text"), REFUSED.values(), ids=REFUSED)
def test_a_refused_call_changes_nothing(fetches, feeds, kind, text):
    with make_session() as session:
        handle = session.partial_run_setup(["r1", "r2"], ["a", "b", "c"])
        session.partial_run(handle, "r1", {"a": 2, "b": 3})
        with pytest.raises(kind, match=text):
            session.partial_run(handle, fetches, feeds)
        assert session.partial_run(handle, "r2", {"c": 4}) == 20


@pytest.mark.parametrize("handle", ["nothing", 7, None, []])
def test_an_unknown_handle_is_an_error(handle):
    with make_session() as session, pytest.raises(InvalidArgument, match="there is no partial run"):
        session.partial_run(handle, [])


def test_a_handle_belongs_to_one_session():
    with make_session() as session, make_session() as other:
        handle = session.partial_run_setup("r1", ["a", "b"])
        with pytest.raises(InvalidArgument, match="there is no partial run"):
            other.partial_run(handle, [], {"a": 1})


@pytest.mark.parametrize(("fetches", "feeds", "text"), [([], ["a"], "at least one fetch or target"),
                                                        (["r1"], ["a"], "you must feed a value"),
                                                        (["r1"], ["a", "b", "a:0"], "fed more than once")])
def test_a_setup_that_cannot_run_is_an_error(fetches, feeds, text):
    with make_session() as session, pytest.raises(InvalidArgument, match=text):
        session.partial_run_setup(fetches, feeds)


def fail():
    raise ValueError("on purpose")


@pytest.mark.parametrize("queue", QUEUES)
def test_the_error_of_a_kernel_ends_the_partial_run(queue):
    acts["n1"] = fail
    with make_session(queue) as session:
        handle = session.partial_run_setup(["n1", "r2"], ["a", "b", "c"])
        with pytest.raises(HealdError, match="on purpose") as caught:
            session.partial_run(handle, "n1", {"a": 1, "b": 1})
        assert caught.value.node == "n1"
        with pytest.raises(InvalidArgument, match="there is no partial run"):
            session.partial_run(handle, [], {"c": 1})


def test_the_error_of_a_call_without_feeds_is_raised_by_the_call_that_fetches():
    acts["n"] = fail
    nodes = [placeholder("a"), node("n", "Act>Act", "a"), const("c", 1), node("r", "Neg", "c")]
    with heald.Session(graph(*nodes), CONFIG) as session:
        handle = session.partial_run_setup(["n", "r"], ["a"])
        assert session.partial_run(handle, "r") == -1
        with pytest.raises(HealdError, match="on purpose"):
            session.partial_run(handle, "n", {"a": 1})


def test_closing_the_session_ends_a_call_that_waits():
    session = make_session()
    handle = session.partial_run_setup(["n1", "n2"], ["a", "b", "c"])
    acts["n1"] = session.close
    with pytest.raises(Cancelled):
        session.partial_run(handle, "n2", {"a": 1, "b": 2, "c": 3})
    assert ran == ["n1"]
    with pytest.raises(FailedPrecondition, match="closed"):
        session.partial_run(handle, "r2", {"c": 2})


def test_an_ended_or_closed_partial_run_leaves_nothing():
    session = make_session()
    for is_finished in (True, False):
        handle = session.partial_run_setup("r1", ["a", "b"])
        session.partial_run(handle, [], {"a": 1})
        assert live_partial_steps(session) == 1
        if is_finished:
            session.partial_run(handle, "r1", {"b": 1})
            assert live_partial_steps(session) == 0
    session.close()
    assert live_partial_steps(session) == 0


def live_partial_steps(session):
    session.host.work_queue.quiesce(10)
    gc.collect()
    return sum(isinstance(step, PartialStep) and step.host is session.host for step in gc.get_objects())


def test_feeds_and_results_belong_to_the_user():
    with make_session() as session:
        handle = session.partial_run_setup(["a", "r1"], ["a", "b"])
        a = X.copy()
        first = session.partial_run(handle, "a", {"a": a})
        a[:] = first[:] = 100
        assert session.partial_run(handle, "r1", {"b": 1}).tolist() == [2, 3, 4]


@pytest.mark.parametrize("condition", [True, False])
def test_dead_values_and_branches_wait_for_their_feeds(condition):
    tested_graph = graph(placeholder("p", (), dtypes.bool_), placeholder("x"), node("sw", "Switch", "x", "p"),
                         node("n", "Neg", "sw:1"), node("e", "Exp", "sw"), node("m", "Merge", "n", "e", N=2))
    with heald.Session(tested_graph) as session:
        handle = session.partial_run_setup(["m:1", "n"], ["x", "p"])
        session.partial_run(handle, [], {"x": X})
        assert session.partial_run(handle, "m:1", {"p": condition}) == (not condition)
        if condition:
            assert session.partial_run(handle, "n").tolist() == (-X).tolist()
        else:
            with pytest.raises(InvalidArgument, match="'n' is dead"):
                session.partial_run(handle, "n")


def test_a_device_that_needs_static_shapes_has_those_of_the_placeholders():
    placed = {"placement": {"order": ["SIM", "CPU"]}}
    nodes = [node("n", "Neg", "a", device="/device:SIM:0")]
    with heald.Session(graph(placeholder("a", (3,)), *nodes), placed) as session:
        handle = session.partial_run_setup("n", ["a"])
        assert session.partial_run(handle, "n", {"a": X}).tolist() == (-X).tolist()
    with heald.Session(graph(placeholder("a"), *nodes), placed) as session:
        with pytest.raises(Unimplemented, match="no shapes of its feeds beforehand") as caught:
            session.partial_run_setup("n", ["a"])
        assert (caught.value.node, "static shapes" in str(caught.value.hint)) == ("n", True)
        assert session.placement()["n"].device == "SIM:0"


def control_flow_on_two_devices():
    """y = x doubled n times on CPU:1, z = -y on CPU:0, and m = z or -z by Switch and Merge on both."""
    cond = function("cond", "i:int32 n:int32 v", [node("t", "Less", "i", "n", T=dtypes.int32)], {"go": "t:z:0"},
                    "go:bool_")
    body = function("body", "i:int32 n:int32 v", [
        const("one", 1, np.int32), node("j", "AddV2", "i", "one:output:0", T=dtypes.int32),
        node("w", "AddV2", "v", "v", device="/device:CPU:1")],
        {"i_out": "j:z:0", "n_out": "n", "v_out": "w:z:0"}, "i_out:int32 n_out:int32")
    nodes = [placeholder("n", (), dtypes.int32), placeholder("x", (3,)), const("zero", 0, np.int32),
             const("two", 2, np.int32), loop("loop", "cond", "body", "zero", "n", "x", arguments="i:int32 n:int32 v"),
             node("y", "Identity", "loop:2", device="/device:CPU:1"), node("z", "Neg", "y", device="/device:CPU:0"),
             node("p", "Less", "n", "two", T=dtypes.int32), node("s", "Switch", "z", "p"),
             node("no", "Neg", "s", device="/device:CPU:1"), node("yes", "Identity", "s:1", device="/device:CPU:0"),
             node("m", "Merge", "no", "yes", N=2)]
    return Graph(nodes, functions=[cond, body])


def run_and_partially_run(session, seed):
    random = np.random.default_rng(seed)
    for number in range(RUNS):
        n, x = int(random.integers(0, 4)), random.integers(-9, 9, 3).astype(np.float32)
        branch = "yes" if n < 2 else "no"
        if number % 4 == 0:
            handle = session.partial_run_setup(["y", "z", "m:0"], ["n", "x"])
            session.partial_run(handle, [], {"n": n})
            y = session.partial_run(handle, "y", {"x": x})
            z, m = session.partial_run(handle, ["z", "m:0"])
        elif number % 4 == 1:  # a fetch inside leaves Switch and Merge, and dead values
            y, z, m, side = session.run(["y", "z", "m:0", branch], {"n": n, "x": x})
            assert side.tolist() == m.tolist()
            with pytest.raises(InvalidArgument, match="is dead"):
                session.run("no" if n < 2 else "yes", {"n": n, "x": x})
        else:
            y, z, m = session.run(["y:0", "z:0", "m:0"], {"n": n, "x": x})
        doubled = x * 2**n
        assert (y.tolist(), z.tolist()) == (doubled.tolist(), (-doubled).tolist()), (seed, number)
        assert m.tolist() == (-doubled if n < 2 else doubled).tolist(), (seed, number)


def run_two_sessions():
    config = {"plugin": {"cpu": {"count": 2}}}
    with ExitStack() as stack:
        sessions = [stack.enter_context(heald.Session(control_flow_on_two_devices(), config)) for _ in range(2)]
        in_threads(lambda seed: run_and_partially_run(sessions[seed // 4], seed), 8)  # four threads for each


def test_threads_run_and_partially_run_sessions_on_two_devices():
    before = set(threading.enumerate())
    run_two_sessions()
    gc.collect()
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(5)
    assert not any(thread.is_alive() for thread in started)


def test_a_partial_run_uses_the_rendezvous_of_its_session():
    from builders.transfers import key, recv

    meeting = LocalRendezvous()
    tested_graph = graph(placeholder("a"), recv("r", "t"), node("y", "AddV2", "a", "r"))
    with heald.Session(tested_graph, rendezvous=lambda: meeting) as session:
        handle = session.partial_run_setup("y", ["a"])
        meeting.send(key("t"), np.float32(2))
        assert session.partial_run(handle, "y", {"a": 1}) == 3
