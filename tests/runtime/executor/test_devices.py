"""Programs over memories that the host does not see have the results of one memory, in any order of waits."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import PluginError
from heald.runtime.executor.step import Step
from heald.runtime.linker.link import link
from heald.runtime.service.runtime import runtime
from hypothesis import given, settings
from hypothesis import strategies as st
from plugins_for_tests import plugin

PLUGIN = plugin("tests")
CONFIG = {"plugins": {"load": [PLUGIN]}, "plugin": {"example_device": {"devices": 2}, "sim": {"devices": 2}}}
TYPES = ("EXAMPLE", "SIM")  # one works when it is waited for; the other tells of every race
EXAMPLES = int(os.environ.get("HEALDTEST_GRAPHS", "100")) // 4
X = np.float32([1, -2, 3])
OPS = {"Identity": lambda a, _: a, "AddV2": np.add, "Sub": np.subtract, "Maximum": np.maximum, "Later": np.add,
       "Queued": np.add}


@pytest.fixture(scope="module")
def host():
    return runtime(CONFIG).host


@st.composite
def programs(draw):
    """Calls (op, first, second, device) over values 0 and 1, which are fed; and the values to return."""
    calls = []
    for i in range(draw(st.integers(1, 14))):
        recent_registers = st.integers(max(0, i - 3), i + 1) | st.integers(0, i + 1)
        op = draw(st.sampled_from(["AddV2", "AddV2", "Sub", "Maximum", "Identity", "Later", "Queued"]))
        device = "CPU:0" if op in ("Later", "Queued") else draw(st.sampled_from(["CPU:0", "{}:0", "{}:1"]))
        calls.append((op, draw(recent_registers), draw(recent_registers), device))
    return calls, draw(st.lists(st.integers(0, len(calls) + 1), min_size=1, max_size=4))


def build(calls, kind):
    nodes = [placeholder("v0", (3,)), placeholder("v1", (3,))]
    for i, (op, a, b, device) in enumerate(calls):
        inputs = [f"v{a}"] if op == "Identity" else [f"v{a}", f"v{b}"]
        nodes.append(node(f"v{i + 2}", f"Test>{op}" if op in ("Later", "Queued") else op, *inputs,
                          device=device.format(kind)))
    return graph(*nodes)


def oracle(calls, x, y):
    values = [x, y]
    for op, a, b, _ in calls:
        values.append(OPS[op](values[a], values[b]))
    return values


@pytest.mark.parametrize("kind", TYPES)
@given(programs())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_random_program_over_three_memories_gives_what_one_gives(kind, program):
    calls, results = program
    session = heald.Session(build(calls, kind), CONFIG)
    step = session.make_callable([f"v{r}" for r in results], ["v0", "v1"])
    for seed in (1, 2):
        x, y = X * seed, X - seed
        want = oracle(calls, x, y)
        got = step(x, y)
        for array, r in zip(got, results, strict=True):
            assert array.tolist() == want[r].tolist()
            array[:] = 99  # it is the user's
        assert [r.tolist() for r in step(x, y)] == [want[r].tolist() for r in results]
    assert faults(session) == []


@pytest.mark.parametrize("kind", TYPES)
@given(programs())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_host_program_over_three_memories_gives_values_that_come(host, kind, program):
    calls, results = program
    prepared = heald.Session(build(calls, kind), CONFIG).prepare([f"v{r}" for r in results], ["v0", "v1"])
    executable = link(prepared.program, host)
    for seed in (1, 2):
        x, y = X * seed, X - seed
        step = Step(host)
        values = executable.start([x, y], step)
        step.detach()
        assert host.await_values(values, timeout=20)
        assert [v.get().tolist() for v in values] == [oracle(calls, x, y)[r].tolist() for r in results]
    assert [f for r in host.devices_in_use() if r.type == "SIM" for f in r.device.native.report] == []


@pytest.mark.parametrize("kind", TYPES)
@given(programs())
@settings(max_examples=EXAMPLES // 5, deadline=None)
def test_runs_of_a_program_over_three_memories_at_once_do_not_see_each_other(kind, program):
    calls, results = program
    session = heald.Session(build(calls, kind), CONFIG)
    step = session.make_callable([f"v{r}" for r in results], ["v0", "v1"])

    def run(seed):
        x, y = X * seed, X - seed
        return [r.tolist() for r in step(x, y)] == [oracle(calls, x, y)[r].tolist() for r in results]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(1, 13)))
    assert faults(session) == []


def faults(session):
    """The faults that the simulated devices of a session have seen."""
    return [fault for record in session.host.devices_in_use() if record.type == "SIM"
            for fault in record.device.native.report]


def bounce(turns, kind="EXAMPLE"):
    """x, negated on one device and the other in turn, with an asynchronous kernel of the host between them."""
    nodes, last = [placeholder("x", (3,))], "x"
    for i in range(turns):
        nodes.append(node(f"d{i}", "Neg", last, device=f"{kind}:{i % 2}"))
        nodes.append(node(f"h{i}", "Test>Queued", f"d{i}", f"d{i}"))
        last = f"h{i}"
    return graph(*nodes), last


def test_buffers_of_a_run_on_devices_are_freed_at_its_end():
    bounced, last = bounce(6)
    session = heald.Session(bounced, CONFIG)
    step = session.make_callable(last, ["x"])
    assert step(X).tolist() == (X * 64).tolist()
    devices = [session.host.open(f"EXAMPLE:{i}") for i in range(2)]
    gc.collect()
    before = [device.memory.available for device in devices]
    for _ in range(20):
        step(X)
    gc.collect()
    assert [device.memory.available for device in devices] == before


def test_a_failing_kernel_beside_a_device_leaves_both_usable():
    session = heald.Session(graph(
        placeholder("x", (3,)), node("d", "Neg", "x", device="EXAMPLE:0"), node("f", "Test>Positive", "d", "x"),
        node("e", "Neg", "f", device="EXAMPLE:0"), const("one", [1, 1, 1]), node("g", "AddV2", "e", "one")), CONFIG)
    step = session.make_callable("g", ["x"])
    for _ in range(5):
        with pytest.raises(PluginError, match="boom f") as caught:
            step(X)
        assert caught.value.node == "f"
        assert step(-X).tolist() == (X * 0 + 1).tolist()


def test_the_waiters_of_a_host_end_with_it():
    others = set(threading.enumerate())
    bounced, last = bounce(2)
    session = heald.Session(bounced, CONFIG)
    session.run(last, {"x": X})
    waiters = [t for t in threading.enumerate() if t.name.startswith("heald-waiter-EXAMPLE") and t not in others]
    assert len(waiters) == 2
    session.host.close()
    for thread in waiters:
        thread.join(5)
        assert not thread.is_alive()
