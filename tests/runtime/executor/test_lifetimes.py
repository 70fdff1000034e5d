"""Runs and sessions leave nothing behind: no values, no memory, no threads, no files."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from collections import Counter
from pathlib import Path

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.garbage import collect
from harness.threads import in_threads
from heald.errors import Aborted, Cancelled, DeadlineExceeded, PluginError
from heald.runtime.executor.parallel_schedule import dependencies, schedule_of_partition
from heald.runtime.executor.step import RunOptions, Step
from heald.runtime.executor.task_partition import TaskPartition
from heald.runtime.host.cancellation import CancelToken
from heald.runtime.service.prepared_step import LARGEST_VARIANT_COUNT
from heald.runtime.service.runtime import runtime
from heald.runtime.values.async_value import AsyncValue
from plugins_for_tests import plugin

pytestmark = pytest.mark.usefixtures("quick_collections")
CONFIG = {"plugins": {"load": [plugin("tests")]}}
X, NEGATIVE = np.float32([1, 2, 3]), np.float32([-9, 2, 3])
PROGRAM = graph(
    placeholder("x", (3,)), const("one", [1, 1, 1]), node("a", "Test>Add", "x", "one"),
    node("positive", "Test>Positive", "a", "x"), node("sync", "Test>Add", "positive", "a"),
    *(last for op in ("Now", "Later", "Queued", "Block", "Poll")
      for last in (node(op, f"Test>{op}", "a", "x"), node(op.lower(), "Test>Add", op, "a"))),
    node("behind", "Test>Positive", "Later", "x"),
)
SUM = (X + 1 + X + X + 1).tolist()


def footprint(allocator):
    """The numbers of threads, files, buffers and heald's objects.

    Threads that have done their work get a moment to end, and so do tasks of the work queue that are about to.
    """
    end = time.monotonic() + 1
    while any(not t.name.startswith(("Main", "heald-")) for t in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.001)
    counts, before = object_counts(allocator), None
    while counts != before and time.monotonic() < end + 1:
        time.sleep(0.05)
        counts, before = object_counts(allocator), counts
    return counts


def object_counts(allocator):
    collect()
    kinds = Counter(f"{type(thing).__module__}.{type(thing).__name__}" for thing in gc.get_objects())
    return {
        "threads": threading.active_count(), "files": open_files(), "buffers": allocator.stats().buffers,
        **{kind: count for kind, count in kinds.items() if kind.startswith("heald.") and "Stats" not in kind},
    }


def open_files():
    listing = Path("/dev/fd")
    return len(list(listing.iterdir())) if listing.exists() else 0


def resident():
    """Bytes of memory that the process takes; 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


class Runs:
    """Runs of one session: right ones, failing ones, cancelled ones."""

    def __init__(self, session):
        self.session = session
        self.steps = {name: session.make_callable(name, ["x"]) for name in ("sync", "now", "later", "queued", "behind")}

    def right(self, name, count):
        step = self.steps[name]
        for _ in range(count):
            assert step(X).tolist() == SUM

    def failing(self, name, error, count):
        step = self.steps[name]
        for _ in range(count):
            with pytest.raises(error, match="boom"):
                step(NEGATIVE)

    def timed_out(self, name, count):
        for _ in range(count):
            with pytest.raises(DeadlineExceeded):
                self.session.run(name, {"x": X}, options=RunOptions(timeout=0.001))

    def cancel(self, name, count, *, before=False):
        for _ in range(count):
            token = CancelToken()
            canceller = threading.Thread(target=token.cancel)
            canceller.start()
            if before:
                canceller.join()
            with pytest.raises(Cancelled):
                self.session.run(name, {"x": X}, options=RunOptions(cancel=token))
            canceller.join()

    def some(self, share):
        """10,000 runs for a share of 1."""
        self.right("sync", int(7000 * share))
        self.right("now", int(600 * share))
        self.right("later", int(200 * share))
        self.right("queued", int(200 * share))
        self.failing("sync", PluginError, int(500 * share))
        self.failing("now", Aborted, int(500 * share))
        self.timed_out("block", int(250 * share))
        self.timed_out("poll", int(250 * share))
        self.cancel("block", int(250 * share))
        self.cancel("sync", int(250 * share), before=True)


@pytest.fixture
def runs():
    session = heald.Session(PROGRAM, CONFIG | {"allocator": {"name": "counting"}, "work_queue": {"threads": 1}})
    yield Runs(session)
    session.close()
    session.host.close()  # its threads end now, even with references to the session


def test_ten_thousand_runs_of_which_many_fail_or_are_cancelled_leave_nothing_behind(runs):
    allocator = runs.session.host.allocator
    runs.some(0.1)
    before, blocks, memory = footprint(allocator), sys.getallocatedblocks(), resident()
    runs.some(1)
    grown = resident() - memory
    assert footprint(allocator) == before
    assert sys.getallocatedblocks() - blocks < 1000  # of Python's own memory, arrays among them
    assert grown < 5_000_000


@pytest.mark.parametrize("end", [
    lambda runs: runs.right("queued", 10),
    lambda runs: runs.failing("sync", PluginError, 10),
    lambda runs: runs.failing("now", Aborted, 10),
    lambda runs: runs.failing("behind", PluginError, 10),
    lambda runs: runs.timed_out("block", 10),
    lambda runs: runs.timed_out("poll", 10),
    lambda runs: runs.cancel("block", 10),
], ids=["right", "failing", "failing later", "failing behind a later one", "timed out",
        "timed out in a kernel", "cancelled"])
def test_a_run_frees_all_it_had_at_its_end_with_or_without_an_error(runs, end):
    allocator = runs.session.host.allocator
    end(runs)
    before = footprint(allocator)["buffers"]
    gc.disable()
    try:
        end(runs)
        assert allocator.stats().buffers == before
    finally:
        gc.enable()


@pytest.mark.parametrize(("name", "config"), [
    ("default", None), ("own", CONFIG | {"work_queue": {"threads": 2}}),
])
def test_two_hundred_sessions_that_were_closed_leave_nothing_behind(name, config):
    nodes = (placeholder("x", (3,)), node("a", "AddV2", "x", "x"))
    if config is not None:
        nodes += node("q", "Test>Queued", "a", "x"), node("sync", "Test>Add", "q", "a")
    else:
        nodes += (node("sync", "Mul", "a", "x"),)

    def live_and_die():
        session = heald.Session(graph(*nodes), config)
        session.run("sync", {"x": X})
        session.close()
        return weakref.ref(session)

    live_and_die()
    gc.collect()
    before = threading.active_count(), open_files()
    sessions = [live_and_die() for _ in range(200)]
    gc.collect()
    assert [session() for session in sessions] == [None] * 200
    assert (threading.active_count(), open_files()) == before


@pytest.mark.parametrize("device", ["", "EXAMPLE:0"])
def test_four_threads_run_one_session_a_thousand_times_each_and_every_result_is_exact(device):
    nodes = [placeholder("x", (2, 1)), const("m", [[1, 2], [3, 4]]), node("y", "MatMul", "m", "x"),
             node("n", "Neg", "y", device=device), node("z", "Sub", "n", "x")]
    session = heald.Session(graph(*nodes))
    step = session.make_callable(["y", "z"], ["x"])
    step(np.float32([[0], [0]]))  # the waiter of a device lives as long as its host
    before = threading.active_count()

    def work(thread):
        for i in range(500):
            a, b = thread, i
            x = np.float32([[a], [b]])
            y = [[a + 2 * b], [3 * a + 4 * b]]
            z = [[-y[0][0] - a], [-y[1][0] - b]]
            assert [r.tolist() for r in step(x)] == [y, z]
            assert session.run("z", {"x": x}).tolist() == z

    in_threads(work)
    assert threading.active_count() == before


def test_four_threads_run_asynchronous_kernels_of_one_session_and_every_result_is_exact(runs):
    queued = runs.session.make_callable(["queued", "now", "sync"], ["x"])

    def work(thread):
        for i in range(1000):
            x = np.float32([thread + 1, i, -i])
            assert [r.tolist() for r in queued(x)] == [(x + 1 + x + x + 1).tolist()] * 3

    in_threads(work)


FAILING = """
from heald.api import OpSpec, hookimpl

HEALD_API = (1, 0)

@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Test>Fail", ["x: T"], ["y: T"], ["T: type"], metadata=lambda attrs, x: x))

@hookimpl
def heald_kernels(registry):
    registry.kernels("EXAMPLE", lambda kernels: kernels.kernel("Test>Fail")(lambda b: lambda x, out: 1 / 0))
"""


def test_a_step_that_fails_on_a_device_leaves_nothing_on_its_stream(tmp_path):
    """Work that is enqueued when a kernel raises reads the feeds. The user owns them again when the error comes."""
    (tmp_path / "failing.py").write_text(FAILING)
    nodes = graph(placeholder("x", (3,)), node("a", "AddV2", "x", "x", device="EXAMPLE:0"),
                  node("bad", "Test>Fail", "a", device="EXAMPLE:0"))
    with heald.Session(nodes, {"plugins": {"load": [str(tmp_path / "failing.py")]}}) as session:
        feed = X.copy()
        with pytest.raises(PluginError, match="ZeroDivisionError"):
            session.run("bad", {"x": feed})
        references = weakref.ref(feed)
        del feed
        gc.collect()
        assert references() is None


def test_a_session_that_is_collected_within_a_method_of_a_device_is_freed_later(monkeypatch):
    """Under a lock of the device's own, for one."""
    feeds = {"x": np.float32([1, 2])}
    device, inside, freed = runtime().host.open("EXAMPLE:0"), [], []
    free, synchronize = device.free, device.synchronize

    def watched_free(buffer):
        freed.append(bool(inside))
        free(buffer)

    def collecting(event):
        inside.append(1)
        gc.collect()
        inside.pop()
        synchronize(event)

    def session(op):
        return heald.Session(graph(placeholder("x", (2,)), node("n", op, "x", device="EXAMPLE:0"),
                                   node("m", op, "n", device="EXAMPLE:0")))

    monkeypatch.setattr(device, "free", watched_free, raising=False)
    monkeypatch.setattr(device, "synchronize", collecting, raising=False)
    other, circle = session("Neg"), []
    gc.disable()
    try:
        garbage = session("Relu")
        garbage.run("m", feeds)
        circle.append((circle, garbage))
        del circle, garbage
        before = len(freed)
        assert other.run("m", feeds).tolist() == [1, 2]
    finally:
        gc.enable()
    assert len(freed) > before
    assert not any(freed)


ONE = (placeholder("x", (3,)), node("y", "Test>Add", "x", "x"))
FLAT = (placeholder("x", (3,)), node("a", "Test>Add", "x", "x"), node("y", "Test>Add", "a", "x"))
OPEN = (placeholder("x"), *FLAT[1:])
LATER = (placeholder("x", (3,)), node("a", "Test>Now", "x", "x"), node("y", "Test>Add", "a", "x"))


def run_in_parts(executable, host):
    """The executable, which runs each of its calls as a part of its own."""
    needs = dependencies(executable.layout)
    partition = TaskPartition.of([[i] for i in range(len(needs))], needs)
    autotuner = executable.autotuner
    autotuner.schedule = schedule_of_partition(executable.layout, host, autotuner.schedule, partition)
    return executable


RUN = {  # ways to run a session's step for a feed
    "by a callable": lambda session: of_any_shape(session.make_callable("y", ["x"]), session),
    "traced": lambda session: of_any_shape(
        lambda x: session.run("y", {"x": x}, options=RunOptions(trace=True)), session),
    "in pieces": lambda session: executable_run(session, run_in_parts, run_once),
    "as a function of a program": lambda session: executable_run(
        session, lambda executable, _: executable, run_started),
}


def of_any_shape(step, session):
    """The step, on the variant for all shapes if its feed has any."""
    if session.graph.nodes["x"].attrs["shape"] is None:
        for n in range(4, 5 + LARGEST_VARIANT_COUNT):
            step(np.zeros(n, np.float32))
    return step


def executable_run(session, prepare, run):
    host = session.host
    executable = prepare(session.prepare("y", ["x"]).executable(), host)
    return lambda x: run(executable, x, Step(host))


def run_once(executable, x, step):
    return executable.run([x], step)[0]


def run_started(executable, x, step):
    (result,) = executable.start([x], step)
    step.loop.run()
    return result.get() if isinstance(result, AsyncValue) else result


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("schedule_kind", RUN)
@pytest.mark.parametrize("nodes", [ONE, FLAT, OPEN, LATER], ids=["one call", "flat", "of any shape", "later"])
def test_only_the_caller_has_the_feeds_and_results_of_a_run_after_it(nodes, schedule_kind):
    with heald.Session(graph(*nodes), CONFIG) as session:
        run = RUN[schedule_kind](session)
        for _ in range(3):
            x = X.copy()
            y = run(x)
            assert y.tolist() == (X * (2 if nodes is ONE else 3)).tolist()
            references = [weakref.ref(x), weakref.ref(y)]
            del x, y
            assert [array() for array in references] == [None, None]


@pytest.mark.parametrize("schedule_kind", ["by a callable", "traced"])
@pytest.mark.parametrize("shape", [(3,), None], ids=["flat", "of any shape"])
def test_a_failed_run_keeps_no_reference_to_its_feeds(shape, schedule_kind):
    nodes = [placeholder("x", shape), const("one", [1]), node("a", "Test>Add", "x", "one"),
             node("y", "Test>Positive", "a", "x")]
    with heald.Session(graph(*nodes), CONFIG) as session:
        run = RUN[schedule_kind](session)
        for _ in range(3):
            x = NEGATIVE.copy()
            references = weakref.ref(x)
            with pytest.raises(PluginError, match="boom"):
                run(x)
            del x
            gc.collect()  # the error and its traceback
            assert references() is None


CHAIN = [node(f"w{i}", "Test>Watch", f"w{i - 1}" if i else "first", f"w{i - 1}" if i else "first") for i in range(5)]
CHAINS = {  # shape and op before five kernels that each read only what the one before has made, and the op behind them
    "flat": (None, "Test>Add", "Test>Add"),
    "tail": (None, "Test>Queued", "Test>Add"),
    "event-driven": ((3,), "Test>Now", "Test>Now"),
    "event-driven, in a task of the queue": ((3,), "Test>Queued", "Test>Now"),
}


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("schedule_kind", ["by a callable", "traced"])
@pytest.mark.parametrize("chain", CHAINS)
def test_a_value_of_the_run_dies_with_its_last_user(chain, schedule_kind):
    shape, before, behind = CHAINS[chain]
    nodes = [placeholder("x", shape), node("first", before, "x", "x"), *CHAIN, node("y", behind, "w4", "w4")]
    with heald.Session(graph(*nodes), CONFIG) as session:
        run = RUN[schedule_kind](session)
        import plugin_of_tests

        for _ in range(3):
            plugin_of_tests.watched.clear()
            plugin_of_tests.alive.clear()
            assert run(X).tolist() == (X * 128).tolist()
            assert len(plugin_of_tests.alive) == 5
            assert max(plugin_of_tests.alive) <= 1  # the first one, in the AsyncValue that it came in
            assert not any(array() is not None for array in plugin_of_tests.watched)


@pytest.mark.usefixtures("without_collector")
def test_a_value_from_before_a_pending_one_dies_with_its_last_user_behind_it():
    chain = [node("w0", "Test>Watch", "early", "pending"),
             *(node(f"w{i}", "Test>Watch", f"w{i - 1}", f"w{i - 1}") for i in range(1, 5))]
    nodes = [placeholder("x", None), node("early", "Test>Add", "x", "x"), node("pending", "Test>Queued", "x", "x"),
             *chain, node("y", "Test>Add", "w4", "w4")]
    with heald.Session(graph(*nodes), CONFIG) as session:
        run = RUN["by a callable"](session)
        import plugin_of_tests

        for _ in range(3):
            plugin_of_tests.watched.clear()
            plugin_of_tests.alive.clear()
            assert run(X).tolist() == (X * 128).tolist()
            assert plugin_of_tests.alive == [0] * 5
