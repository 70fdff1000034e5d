"""Kernels have scratch from the memory plan, prepared objects of a device are released once, uploads wait once."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from itertools import pairwise

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.eager_runtime import core
from heald.errors import InvalidArgument, PluginError, ResourceExhausted
from plugins_for_tests import plugin

pytestmark = pytest.mark.usefixtures("graphs_as_written")
PLUGIN = plugin("scratch")
X = np.float32([1, -2, 3])
DEVICES = ["CPU:0", "SIM:0"]


def config(**sim):
    return {"plugins": {"load": [PLUGIN]}, "plugin": {"sim": sim}}


def doubled(device, times=1, shape=(3,)):
    names = ["x", *(f"y{i}" for i in range(times))]
    nodes = [node(name, "Test>Double", before, device=device) for before, name in pairwise(names)]
    return graph(placeholder("x", shape), *nodes), names[-1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_kernel_has_scratch_behind_its_outputs(device, times):
    net, last = doubled(device, times)
    with heald.Session(net, config()) as session:
        for run in range(3):
            assert session.run(last, {"x": X + run}).tolist() == ((X + run) * 2**times).tolist()


@pytest.mark.parametrize("settings", [{"debug": {"poison": True}}, {"debug": {"synchronous": True}}])
@pytest.mark.parametrize("device", DEVICES)
def test_scratch_works_under_the_checks_of_debug(device, settings):
    net, last = doubled(device, 3)
    with heald.Session(net, config() | settings) as session:
        for _ in range(2):
            assert session.run(last, {"x": X}).tolist() == (X * 8).tolist()


def test_kernels_one_after_the_other_share_their_scratch():
    net, last = doubled("CPU:0", 6)
    with heald.Session(net, config()) as session:
        session.run(last, {"x": X})
        plan = session.prepare([last], ["x"]).executable(((3,),)).layout.memory.plan
    assert 4096 <= plan.nbytes < 2 * 4096


def test_scratch_of_a_device_is_allocated_once_for_a_frame():
    net, last = doubled("SIM:0", 4)
    with heald.Session(net, config()) as session:
        session.run(last, {"x": X})
        device, sizes = session.host.open("SIM:0"), []
        allocate = device.allocate
        device.allocate = lambda nbytes: sizes.append(nbytes) or allocate(nbytes)
        for _ in range(3):
            session.run(last, {"x": X})
        del device.allocate
    assert 4096 not in sizes


@pytest.mark.parametrize("device", DEVICES)
def test_a_call_that_binds_in_the_run_and_an_eager_op_have_scratch(device):
    if device == "CPU:0":
        net, last = doubled(device, shape=(None,))
        with heald.Session(net, config()) as session:
            step = session.make_callable(last, ["x"])
            assert step(X[:2]).tolist() == [2, -4]
            assert step(X).tolist() == (2 * X).tolist()
    eager = core(load=(PLUGIN,))
    assert eager.execute("Test>Double", X, device=device).numpy().tolist() == (2 * X).tolist()


def test_a_kernel_of_a_partial_run_has_scratch():
    net, last = doubled("CPU:0")
    with heald.Session(net, config()) as session:
        handle = session.partial_run_setup([last], ["x"])
        assert session.partial_run(handle, last, {"x": X}).tolist() == (2 * X).tolist()


def test_scratch_of_a_kernel_that_returns_its_outputs_is_a_fault_of_its_plugin():
    net = graph(placeholder("x", (3,)), node("y", "Test>Returned", "x"))
    with heald.Session(net, config()) as session, pytest.raises(PluginError, match="asked for scratch, and the kernel "
                                                                                     "returns its outputs"):
        session.run("y", {"x": X})


@pytest.mark.parametrize("nbytes", [-1, 2.5, "4", None, True])
def test_a_size_that_is_none_is_refused(nbytes):
    from heald.runtime.contract.kernel import Bind

    b = Bind("n", "Op", {}, (), (), None, 0, {})
    with pytest.raises(InvalidArgument, match="bytes"):
        b.scratch(nbytes)


def test_scratch_beyond_the_memory_is_a_typed_error():
    net, last = doubled("SIM:0")
    with heald.Session(net, config(memory=2048)) as session, pytest.raises(ResourceExhausted, match="4096 bytes"):
        session.run(last, {"x": X})


def scaled(count):
    nodes = [placeholder("x", (3,))]
    before = "x"
    for i in range(count):
        nodes += [const(f"scale{i}", np.full(3, i + 2.0)),
                  node(f"y{i}", "Test>Scaled", before, f"scale{i}", device="SIM:0")]
        before = f"y{i}"
    return graph(*nodes), before


def released():
    module = next(m for m in sys.modules.values() if getattr(m, "__file__", None) == PLUGIN)
    return module.released


@pytest.mark.parametrize("count", [1, 3])
def test_objects_that_a_kernel_prepared_are_released_once_when_the_program_is_closed(count):
    net, last = scaled(count)
    session = heald.Session(net, config())
    for _ in range(2):
        session.run(last, {"x": X})
    session.make_callable(last, ["x"])(X)
    released().clear()
    device = session.host.open("SIM:0")
    gc.collect()
    assert released() == []
    session.close()
    del session
    gc.collect()
    assert len(released()) == count
    assert set(Counter(map(id, released())).values()) == {1}
    assert device.native.report == []


@pytest.mark.parametrize("count", [2, 7])
def test_the_constants_of_a_device_are_uploaded_with_one_wait(count, monkeypatch):
    nodes = [placeholder("x", (3,))]
    for i in range(count):
        nodes += [const(f"c{i}", np.full(3, i + 1.0)),
                  node(f"y{i}", "AddV2", f"y{i - 1}" if i else "x", f"c{i}", device="SIM:0")]
    with heald.Session(graph(*nodes), config()) as session:
        device, events = session.host.open("SIM:0"), []
        for name in ("copy_in", "synchronize"):
            method = getattr(device, name)
            monkeypatch.setattr(device, name, lambda *args, name=name, method=method: (
                events.append(name), method(*args))[1], raising=False)
        session.prepare([f"y{count - 1}"], ["x"]).executable(((3,),))
        assert Counter(events) == {"copy_in": count, "synchronize": 1}
        assert events[-1] == "synchronize"
        assert session.run(f"y{count - 1}", {"x": X}).tolist() == (X + count * (count + 1) / 2).tolist()


def test_a_failed_upload_is_a_typed_error_and_the_next_link_uploads_again():
    with heald.Session(graph(placeholder("x", (3,)), const("c", X), node("y", "AddV2", "x", "c", device="SIM:0")),
                       config()) as session:
        session.host.open("SIM:0").native.fail("copy:1")
        with pytest.raises(heald.errors.HealdError, match="planted fault"):
            session.run("y", {"x": X})
        assert session.run("y", {"x": X}).tolist() == (2 * X).tolist()
