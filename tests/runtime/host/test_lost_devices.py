"""A device that is lost while it runs stays lost for its host, and everybody is told, at once, why."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.threads import in_threads
from heald.errors import HealdWarning, InvalidArgument, Unavailable
from heald.runtime.config.config import load_config
from heald.runtime.executor.step import Step
from heald.runtime.linker.link import link
from heald.runtime.service import runtime
from plugins_for_tests import plugin

CONFIG = {"plugins": {"load": [plugin("tests")]}, "plugin": {"sim": {"devices": 2}}}
X = np.float32([1, -2, 3])
REASON = "device SIM:0 is unavailable: the device is lost"


@pytest.fixture
def host(monkeypatch):
    """The host of all sessions of a test that have no config of their own."""
    return host_of(monkeypatch, CONFIG)


def host_of(monkeypatch, config):
    scope = runtime.ProcessScope()
    scope.default = runtime.Runtime(load_config(config))
    monkeypatch.setattr(runtime, "process_scope", scope)
    return scope.default.host


def nodes(device="SIM:0"):
    """The device, an asynchronous kernel of the host, and the device again."""
    return graph(placeholder("x", (3,)), const("c", [1, 1, 1]), node("a", "AddV2", "x", "c", device=device),
                 node("q", "Test>Queued", "a", "a"), node("b", "Neg", "q", device=device), node("h", "Neg", "x"))


def lose(host, when=1):
    host.open("SIM:0").native.fail(f"lost:{when}")


def record(host):
    return host.records("SIM")[0]


@pytest.mark.parametrize("when", range(1, 7))  # in, launch, out, in, launch, out
def test_a_run_has_the_error_that_lost_its_device_and_later_runs_fail_before_they_begin(host, when):
    session = heald.Session(nodes())
    step = session.make_callable("b", ["x"])
    assert step(X).tolist() == (-2 * (X + 1)).tolist()
    driver = host.open("SIM:0").native
    lose(host, when)
    with pytest.raises(Unavailable, match="the device is lost") as caught:
        step(X)
    assert caught.value.device == "SIM:0"
    assert (record(host).status, record(host).reason) == ("unavailable", "the device is lost")
    driver.reset()
    spans = len(driver.spans)
    for _ in range(2):
        with pytest.raises(Unavailable, match=REASON):
            step(X)
    with pytest.raises(Unavailable, match=REASON):
        session.run("a", {"x": X})  # another step of it
    with pytest.raises(Unavailable, match=REASON):
        step(np.float32([1, 2, 3]))
    assert (len(driver.spans), driver.report) == (spans, [])
    assert session.run("h", {"x": X}).tolist() == (-X).tolist()


def test_new_sessions_get_another_device_or_the_reason(host):
    step = heald.Session(nodes()).make_callable("a", ["x"])
    lose(host)
    with pytest.raises(Unavailable):
        step(X)
    with pytest.raises(Unavailable, match=REASON):
        host.open("SIM:0")
    with pytest.warns(HealdWarning, match="nothing runs on SIM:0: unavailable: the device is lost"):
        session = heald.Session(nodes())
    assert {row["node"]: row["assigned"] for row in session.placement().table()}["a"] == "SIM:1"
    assert session.run("b", {"x": X}).tolist() == (-2 * (X + 1)).tolist()
    assert heald.Session(nodes("CPU:0")).run("b", {"x": X}).tolist() == (-2 * (X + 1)).tolist()
    new_session = heald.Session(nodes(), CONFIG | {"placement": {"fallback": "error"}})  # with devices of its own
    assert new_session.run("b", {"x": X}).tolist() == (-2 * (X + 1)).tolist()


def test_a_strict_request_for_a_lost_device_is_an_error_with_the_reason(monkeypatch):
    host = host_of(monkeypatch, CONFIG | {"placement": {"fallback": "error"}})
    step = heald.Session(nodes()).make_callable("a", ["x"])
    lose(host)
    with pytest.raises(Unavailable):
        step(X)
    with pytest.raises(InvalidArgument, match="asks for SIM:0, which cannot serve it: unavailable: the device is lost"):
        heald.Session(nodes()).run("a", {"x": X})


def test_one_that_is_lost_while_constants_are_uploaded_is_lost(host):
    session = heald.Session(nodes())
    lose(host)
    with pytest.raises(Unavailable, match="the device is lost"):
        session.run("a", {"x": X})
    assert record(host).status == "unavailable"


def test_one_that_has_no_memory_left_is_not_lost(host):
    step = heald.Session(nodes()).make_callable("a", ["x"])
    host.open("SIM:0").native.fail("allocate:1")
    with pytest.raises(heald.errors.ResourceExhausted) as caught:
        step(X)
    assert caught.value.device == "SIM:0"
    assert step(X).tolist() == (X + 1).tolist()


def test_a_host_program_gives_the_error_in_what_depends_on_it(host):
    prepared = heald.Session(nodes()).prepare(["b", "h"], ["x"])
    executable = link(prepared.program, host)
    lose(host)
    step = Step(host)
    values = executable.start([X], step)
    step.detach()
    assert host.await_values(values, timeout=10)
    assert isinstance(values[0].error, Unavailable)
    assert values[1].get().tolist() == (-X).tolist()
    with pytest.raises(Unavailable, match=REASON):
        executable.start([X], Step(host))


def test_each_thread_gets_the_error_of_a_lost_device_and_none_hangs(host):
    step = heald.Session(nodes()).make_callable("b", ["x"])
    step(X)
    lose(host, 200)
    errors = []

    def work(thread):
        for _ in range(60):
            try:
                assert step(X).tolist() == (-2 * (X + 1)).tolist()
            except Unavailable as error:
                errors.append(error)

    in_threads(work)
    assert record(host).status == "unavailable"
    assert len(errors) > 100
    assert host.open("SIM:1").native.report == []


def test_a_lost_device_is_closed_with_its_host(host, monkeypatch):
    closed, earlier = [], set(threading.enumerate())  # hosts of other tests may have waiters of their own
    step = heald.Session(nodes()).make_callable("b", ["x"])
    step(X)
    device = host.open("SIM:0")
    monkeypatch.setattr(device, "close", lambda: closed.append(device), raising=False)
    lose(host)
    with pytest.raises(Unavailable):
        step(X)
    del step
    gc.collect()
    host.close()
    assert closed == [device]
    for thread in set(threading.enumerate()) - earlier:
        if thread.name == "heald-waiter-SIM:0":
            thread.join(5)
            assert not thread.is_alive()


def test_unavailable_from_a_kernel_of_the_host_loses_nothing(host):
    cpu = host.open("CPU:0")
    host.note_failure(cpu, Unavailable("a server is down"))
    host.note_failure(SimpleNamespace(type="SIM", attributes={}), Unavailable("somebody else's"))
    assert host.open("CPU:0") is cpu
    assert host.names("SIM") == ["SIM:0", "SIM:1"]
