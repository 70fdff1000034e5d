"""A run ends between two of its kernels, on any thread's request and under every schedule, and always with an error."""

from __future__ import annotations

import threading

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import Cancelled, DeadlineExceeded, FailedPrecondition, InvalidArgument, PluginError
from heald.graphs.session.run_metadata import RunMetadata
from heald.runtime.executor import step as step_module
from heald.runtime.executor.parallel_schedule import dependencies, schedule_of_partition
from heald.runtime.executor.step import RunOptions, Step
from heald.runtime.executor.task_partition import TaskPartition
from heald.runtime.host.cancellation import CancelToken
from heald.runtime.linker.link import link
from heald.runtime.service.runtime import runtime
from plugins_for_tests.acting_plugin import CONFIG, acts, binds, passed, ran

X = np.float32([1, 2, 3])
LENGTH = 200
NAMES = [f"n{i}" for i in range(LENGTH)]
MIDDLE, LAST = NAMES[70], NAMES[-1]


@pytest.fixture(autouse=True)
def _forget():
    for memory in (acts, binds, passed, ran):
        memory.clear()
    yield
    for memory in (acts, binds, passed, ran):
        memory.clear()


def chain(first="Act", length=LENGTH):
    return graph(placeholder("x", (3,)), *[node(f"n{i}", "Act>Act" if i else f"Act>{first}", f"n{i - 1}" if i else "x")
                                           for i in range(length)])


def session(**options):
    return heald.Session(chain(**options), CONFIG)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(step_module, "monotonic", lambda: self.now)

    def advance(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


RUN_KINDS = {  # how a run goes: the op that the chain begins with, and the options beside the token
    "flat": ("Act", {}), "traced": ("Act", {"trace": True}), "with a deadline": ("Act", {"timeout": 100}),
    "event-driven": ("ActNow", {}), "event-driven and traced": ("ActNow", {"trace": True}),
}


@pytest.mark.parametrize(("first", "options"), RUN_KINDS.values(), ids=RUN_KINDS)
def test_no_kernel_begins_once_the_token_is_cancelled(first, options):
    token = CancelToken()
    acts[MIDDLE] = token.cancel
    with session(first=first) as open_session, pytest.raises(Cancelled):
        open_session.run(LAST, {"x": X}, options=RunOptions(cancel=token, **options))
    assert ran == NAMES[:71]


@pytest.mark.parametrize(("first", "options"), RUN_KINDS.values(), ids=RUN_KINDS)
def test_a_token_that_is_cancelled_in_the_last_kernel_ends_the_run_too(first, options):
    token = CancelToken()
    acts[LAST] = token.cancel
    with session(first=first) as open_session, pytest.raises(Cancelled):
        open_session.run(LAST, {"x": X}, options=RunOptions(cancel=token, **options))


@pytest.mark.parametrize("first", ["Act", "ActNow"])
def test_closing_the_session_ends_runs_that_have_no_options(first):
    open_session = session(first=first)
    step = open_session.make_callable(LAST, ["x"])
    acts[MIDDLE] = open_session.close
    with pytest.raises(Cancelled, match=r"closed|cancelled"):
        step(X)
    assert ran == NAMES[:71]
    with pytest.raises(FailedPrecondition):
        step(X)


def test_cancelling_the_host_ends_runs_and_a_restart_meanwhile_makes_none_of_them_right():
    open_session = session()
    step = open_session.make_callable(LAST, ["x"])
    host = open_session.host
    acts[MIDDLE] = lambda: (host.cancel_execution(), host.restart())
    with pytest.raises(Cancelled):
        step(X)
    assert ran == NAMES[:71]
    acts.clear()
    assert step(X).tolist() == (X + LENGTH).tolist()


@pytest.mark.parametrize("first", ["Act", "ActNow"])
def test_no_kernel_begins_behind_the_deadline(clock, first):
    acts[MIDDLE] = lambda: clock.advance(3)
    with session(first=first) as open_session, pytest.raises(DeadlineExceeded, match="2 s"):
        open_session.run(LAST, {"x": X}, options=RunOptions(timeout=2))
    assert ran == NAMES[:71]


@pytest.mark.parametrize("length", [1, LENGTH])
@pytest.mark.parametrize("first", ["Act", "ActNow"])
def test_a_run_whose_last_kernel_ends_behind_the_deadline_raises(clock, first, length):
    last = NAMES[length - 1]
    acts[last] = lambda: clock.advance(3)
    with session(first=first, length=length) as open_session, pytest.raises(DeadlineExceeded):
        open_session.run(last, {"x": X}, options=RunOptions(timeout=2))
    assert ran[-1] == last


@pytest.mark.parametrize("end", ["deadline", "token"])
def test_linking_ends_with_its_run_and_the_next_run_links_anew(clock, end):
    token = CancelToken()
    binds[MIDDLE] = token.cancel if end == "token" else lambda: clock.advance(3)
    bound = []
    for name in NAMES[:70]:  # binding begins with the last call
        binds[name] = lambda name=name: bound.append(name)
    with session() as open_session:
        with pytest.raises(Cancelled if end == "token" else DeadlineExceeded):
            open_session.run(LAST, {"x": X}, options=RunOptions(timeout=2, cancel=token))
        assert not bound
        assert not ran
        binds.clear()
        assert open_session.run(LAST, {"x": X}).tolist() == (X + LENGTH).tolist()


def test_passes_end_with_their_run(clock):
    acts["first"] = lambda: clock.advance(3)
    with session() as open_session:
        with pytest.raises(DeadlineExceeded):
            open_session.run(LAST, {"x": X}, options=RunOptions(timeout=2))
        assert passed == ["first"]
        acts.clear()
        assert open_session.run(LAST, {"x": X}).tolist() == (X + LENGTH).tolist()


def test_a_run_that_waits_for_another_ones_linking_ends_with_its_token():
    token, inside, over = CancelToken(), threading.Event(), threading.Event()
    binds[MIDDLE] = lambda: (inside.set(), over.wait(20))
    with session() as open_session:
        linking = threading.Thread(target=open_session.run, args=(LAST, {"x": X}))
        linking.start()
        assert inside.wait(20)
        token.cancel()
        with pytest.raises(Cancelled):
            open_session.run(LAST, {"x": X}, options=RunOptions(cancel=token))
        over.set()
        linking.join()
        assert open_session.run(LAST, {"x": X}).tolist() == (X + LENGTH).tolist()


def test_a_trace_has_no_kernel_that_began_after_the_token_was_cancelled():
    token, metadata, events_before = CancelToken(), RunMetadata(), []
    acts[MIDDLE] = lambda: (token.cancel(), events_before.append(step_module.monotonic()))
    with session() as open_session, pytest.raises(Cancelled):
        open_session.run(LAST, {"x": X}, options=RunOptions(cancel=token, trace=True), metadata=metadata)
    assert [event.call.node for event in metadata.trace.events] == NAMES[:71]


def session_in_parts(length):
    """Two chains beside each other, in pieces of five calls each, of a step of their own."""
    rows = [node(f"{c}{i}", "Act>Act", f"{c}{i - 1}" if i else "x") for i in range(length) for c in "ab"]
    host = runtime(CONFIG | {"work_queue": {"threads": 2}}).host
    open_session = heald.Session(graph(placeholder("x", (3,)), *rows), CONFIG)
    prepared = open_session.prepare([f"a{length - 1}", f"b{length - 1}"], ["x"])
    program = prepared.program
    executable = link(program, host, program.functions["main"].arg_metas, waits=True)
    layout = executable.layout
    calls = [layout.calls[n].call.node for n in layout.lists.flat]
    members = [[i for i, name in enumerate(calls) if name[0] == c and int(name[1:]) // 5 == part]
               for part in range(length // 5) for c in "ab"]
    flat = executable.autotuner.schedule
    partition = TaskPartition.of(members, dependencies(layout))
    executable.autotuner.schedule = schedule_of_partition(layout, host, flat, partition)
    return executable, host


def test_a_run_in_pieces_begins_no_kernel_once_it_is_cancelled():
    executable, host = session_in_parts(50)
    step, over = Step(host), threading.Event()
    acts["a22"] = lambda: (step.cancel(Cancelled("enough")), over.set())
    acts["b30"] = lambda: over.wait(20)
    with pytest.raises(Cancelled, match="enough"):
        executable.run([X], step)
    chains = {c: [name for name in ran if name[0] == c] for c in "ab"}
    assert chains["a"] == [f"a{i}" for i in range(23)]
    assert len(chains["b"]) <= 31
    acts.clear()
    assert [r.tolist() for r in executable.run([X], Step(host))] == [(X + 50).tolist()] * 2
    host.close()


def test_a_run_in_pieces_of_a_step_that_was_cancelled_before_begins_no_kernel():
    executable, host = session_in_parts(50)
    step = Step(host)
    step.cancel(Cancelled("enough"))
    with pytest.raises(Cancelled, match="enough"):
        executable.run([X], step)
    assert not ran
    host.close()


def test_a_kernel_that_fails_in_pieces_is_named_though_the_others_are_stopped():
    executable, host = session_in_parts(50)

    def fail():
        raise ValueError("boom")

    acts["b33"] = fail
    with pytest.raises(PluginError, match="boom") as caught:
        executable.run([X], Step(host))
    assert caught.value.node == "b33"
    host.close()


def test_a_stop_that_comes_late_leaves_the_frames_next_run_alone():
    with session() as open_session:
        executable = open_session.prepare(LAST, ["x"]).executable()
        host, stale = open_session.host, []
        frames = executable.make_frame()
        executable.autotuner.schedule.frames.append(frames)
        first = Step(host)
        executable.run([X], first)
        stale.append(frames.cursor)
        acts[MIDDLE] = lambda: ([cursor.stop() for cursor in stale], frames.stop(first))
        assert executable.run([X], Step(host))[0].tolist() == (X + LENGTH).tolist()


def fail():
    raise ValueError("no")


@pytest.mark.parametrize("timeout", [None, 100], ids=["flat", "with a deadline"])
@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_run_that_ended_early_leaves_its_frame_to_the_next_one_without_its_values(end, timeout):
    with session() as open_session:
        executable, host = open_session.prepare(LAST, ["x"]).executable(), open_session.host
        frames = executable.autotuner.schedule.frames
        executable.run([X], Step(host))
        (frame,) = frames
        token = CancelToken()
        acts[MIDDLE] = token.cancel if end == "cancelled" else fail
        with pytest.raises(Cancelled if end == "cancelled" else PluginError):
            executable.run([X], Step(host, timeout, (token,)))
        assert frames == [frame]
        assert frame.registers[0] is frame.registers[-1] is None  # the feed, and the step
        acts.clear()
        assert executable.run([X], Step(host))[0].tolist() == (X + LENGTH).tolist()


TIMEOUTS = {
    "text": "1", "a bool": True, "negative": -1, "NaN": float("nan"), "a list": [1], "complex": 1j,
    "minus infinity": float("-inf"),
}


@pytest.mark.parametrize("timeout", TIMEOUTS.values(), ids=TIMEOUTS)
def test_a_timeout_that_is_no_time_is_refused(timeout):
    with session(length=2) as open_session, pytest.raises(InvalidArgument, match=r"RunOptions\.timeout"):
        open_session.run("n1", {"x": X}, options=RunOptions(timeout=timeout))
    assert not ran


@pytest.mark.parametrize("timeout", [None, float("inf"), 1e300, 10**30, np.float32(60), np.int64(60)])
def test_a_timeout_may_be_any_number_of_seconds(timeout):
    with session(length=2) as open_session:
        assert open_session.run("n1", {"x": X}, options=RunOptions(timeout=timeout)).tolist() == (X + 2).tolist()


def test_options_of_another_kind_are_refused():
    with session(length=2) as open_session:
        for options in ({"timeout": 1}, 1.0, RunOptions):
            with pytest.raises(InvalidArgument, match="options="):
                open_session.run("n1", {"x": X}, options=options)
        with pytest.raises(InvalidArgument, match=r"RunOptions\.cancel"):
            open_session.run("n1", {"x": X}, options=RunOptions(cancel=threading.Event()))


