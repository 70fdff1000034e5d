"""The simulated accelerator: its numbers are right, and it finds each wrong use of a device at any timing."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.run_op import REGISTRIES
from heald.errors import HealdError, HealdWarning, Internal, InvalidArgument, ResourceExhausted, Unavailable
from heald.graphs.graph.graph import Node
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from heald_conformance.golden import agree, cases
from heald_sim.config import Config
from heald_sim.device import Sim, scan
from heald_sim.kernels import HOST_INPUTS, StreamKernel
from heald_sim.native import Kernel
from hypothesis import given, settings
from hypothesis import strategies as st

X = np.float32([1, -2, 3])


def open_devices(**config: Any) -> list[Sim]:
    opened = list(scan(Config(**config)))
    for device in opened:
        device.open()
    return opened


@pytest.fixture
def device() -> Iterator[Sim]:
    (only_device,) = open_devices()
    yield only_device
    only_device.close()


def upload(device: Sim, array: Any, stream: int = 0) -> Any:
    buffer = device.allocate(array.nbytes)
    device.copy_in(array, buffer, stream)
    return buffer


def sync(device: Sim, stream: int = 0) -> None:
    device.synchronize(device.record(stream))


def negate(device: Sim, x: Any, out: Any, stream: int = 0, node: str = "n") -> None:
    from heald.runtime.values.tensor import TensorMetadata

    meta = TensorMetadata(dtypes.float32, (3,))
    device.native.launch(stream, Kernel("Neg", node, np.negative, (meta,), (meta,), 3), (x, out))


def kinds(device: Sim) -> list[str]:
    return [fault.kind for fault in device.native.report]


def native(session: heald.Session, name: str = "SIM:0") -> Any:
    return session.host.open(name).native  # type: ignore[attr-defined]


def session(nodes: list[Any], device: str | None = None, **sim: Any) -> heald.Session:
    """A session with devices of its own, which compute as the CPU plugin's kernels do."""
    config = {"plugin": {"sim": {"seed": 1} | sim}, "plugins": {"block": ["onednn"]}}
    return heald.Session(graph(*nodes), config, device=device)


def run_on(device: str, nodes: list[Any], fetches: Any, feeds: dict[str, Any], **sim: Any) -> tuple[Any, heald.Session]:
    on_device = session(nodes, device, **sim)
    return on_device.run(fetches, feeds), on_device


# Networks


def network() -> list[Any]:
    images = {"data_format": b"NHWC", "padding": b"SAME"}
    draw = np.random.default_rng(0).normal
    return [
        placeholder("x", (2, 6, 6, 3)), const("f", draw(size=(3, 3, 3, 4))), const("b", draw(size=4)),
        const("w", draw(size=(36, 5))), const("shape", [2, 36], np.int32), const("perm", [1, 0], np.int32),
        node("conv", "Conv2D", "x", "f", strides=[1, 1, 1, 1], **images), node("bias", "BiasAdd", "conv", "b"),
        node("relu", "Relu", "bias"),
        node("pool", "MaxPool", "relu", ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], **images),
        node("flat", "Reshape", "pool", "shape", Tshape=dtypes.int32), node("dense", "MatMul", "flat", "w"),
        node("y", "Softmax", "dense"), node("t", "Transpose", "y", "perm", Tperm=dtypes.int32),
    ]


def test_a_network_gives_the_cpus_results():
    feeds = {"x": np.random.default_rng(1).normal(size=(2, 6, 6, 3)).astype(np.float32)}
    expected, _ = run_on("CPU:0", network(), ["y", "t", "relu"], feeds)
    results, on_sim = run_on("SIM:0", network(), ["y", "t", "relu"], feeds)
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert {row["assigned"] for row in on_sim.placement().table()} == {"SIM:0", "host"}
    assert native(on_sim).report == []


def test_a_simulator_is_used_on_explicit_request_only():
    nodes = graph(placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Neg", "a", device="GPU:0"))
    fallback_session = heald.Session(nodes, {"placement": {"fallback": "allow"}})
    assert fallback_session.run("b", {"x": X}).tolist() == X.tolist()
    assert fallback_session.host.preference()[-1] == "SIM"  # type: ignore[attr-defined]
    assert {row["assigned"] for row in fallback_session.placement().table()} == {"CPU:0", "host"}


@given(st.lists(st.tuples(st.sampled_from(["AddV2", "Sub", "Mul", "Maximum"]), st.integers(0, 99), st.integers(0, 99),
                          st.sampled_from(["SIM:0", "SIM:1", "CPU:0"])), min_size=1, max_size=12), st.booleans())
@settings(max_examples=40)
def test_graphs_split_between_devices_give_the_results_of_one_device(plan, wraps):
    """Programs of the runtime do nothing wrong on the devices, and free their memory."""
    def nodes(split: bool) -> list[Any]:
        operations = [placeholder("n0", (3,)), const("n1", [2, 0.5, -1])]
        for i, (op, a, b, where) in enumerate(plan, 2):
            operations.append(node(f"n{i}", op, f"n{a % i}", f"n{b % i}", device=where if split else "CPU:0"))
        return operations

    fetches = [f"n{i}" for i in range(2, len(plan) + 2)]
    on_devices = session(nodes(True), devices=2, wraps=wraps)
    expected, _ = run_on("CPU:0", nodes(False), fetches, {"n0": X})
    for _ in range(2):
        for a, b in zip(on_devices.run(fetches, {"n0": X}), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    drivers = [native(on_devices, name) for name in ("SIM:0", "SIM:1")]
    on_devices.close()
    for driver in drivers:
        assert driver.report == []
        assert driver.memory.used == 0


@pytest.mark.filterwarnings("ignore::heald.errors.HealdWarning")
def test_ops_give_tensorflows_results():
    """The golden cases, as constants: unlike the CPU's those are copied in, and nothing but shapes is folded."""
    host = runtime().host
    covered = [case for op, of_op in cases().items() for case in of_op if host.registries.kernels.candidates(op, "SIM")]
    right, wrong = 0, []
    for case in covered:
        case_graph = case.graph()
        constants = [Node(f"i{i}", "Const", attrs={"dtype": case_graph.nodes[f"i{i}"].attrs["dtype"], "value": x})
                     for i, x in enumerate(case.inputs)]
        on_sim = heald.Session(case_graph.replace(nodes=constants), device="SIM:0")
        if case.outputs is None or on_sim.placement()["op"].device != "SIM:0":
            continue
        with suppress(InvalidArgument):  # as on the CPU, where heald's shape function refuses more than TensorFlow's
            got = on_sim.run([f"op:{i}" for i in range(len(case.outputs))])
            right += 1
            wrong += [case.id for g, w in zip(got, case.outputs, strict=True)
                      if w is not None and not agree(g, w, case.tolerance)]
    assert wrong == []
    assert right >= 880
    assert host.open("SIM:0").native.report == []


def test_kernels_read_device_memory_and_not_the_constants_of_bind():
    on_sim = session([placeholder("x", (1, 2)), const("w", [[1], [2]]), node("y", "MatMul", "x", "w")], "SIM:0")
    step = on_sim.make_callable("y", ["x"])
    assert step(np.ones((1, 2), np.float32)).tolist() == [[3]]
    memory = native(on_sim).memory
    weights = next(b for b in memory.live_buffers if b.bytes(8).tobytes() == np.float32([1, 2]).tobytes())
    weights.bytes(8)[:] = np.float32([5, 6]).view(np.uint8)
    assert step(np.ones((1, 2), np.float32)).tolist() == [[11]]


def test_inputs_that_kernels_read_on_the_host_are_those_whose_values_metadata_reads():
    ops = REGISTRIES.ops
    expected = {op: set(ops.metadata(ops.get(op)).values) for op in HOST_INPUTS}
    assert {op: set(names) for op, names in HOST_INPUTS.items()} == expected


# Masks


def test_ops_and_types_that_config_masks_run_on_the_cpu():
    nodes = [placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Abs", "a"),
             Node("c", "Cast", ["b"], attrs={"SrcT": dtypes.float32, "DstT": dtypes.int32})]
    with pytest.warns(HealdWarning, match="no kernel for Abs"):
        result, on_sim = run_on("SIM:0", nodes, "b", {"x": X}, ops=["Neg", "Cast"])
    assert result.tolist() == np.abs(X).tolist()
    assigned = {row["node"]: row["assigned"] for row in on_sim.placement().table()}
    assert (assigned["a"], assigned["b"]) == ("SIM:0", "CPU:0")
    with pytest.warns(HealdWarning, match="Cast does not run on SIM:0"):
        result, on_sim = run_on("SIM:0", nodes, "c", {"x": X}, dtypes=["float32"])
    assert result.tolist() == [1, 2, 3]
    assert {row["node"]: row["assigned"] for row in on_sim.placement().table()}["b"] == "SIM:0"


def test_a_mask_of_types_is_for_tensors_in_device_memory():
    nodes = [placeholder("x", (2, 3)), const("s", [6], np.int32), node("r", "Reshape", "x", "s", Tshape=dtypes.int32)]
    result, on_sim = run_on("SIM:0", nodes, "r", {"x": np.ones((2, 3))}, dtypes=["float32"])
    assert result.shape == (6,)
    assert {row["assigned"] for row in on_sim.placement().table()} == {"SIM:0", "host"}


def test_strings_stay_in_host_memory():
    nodes = [placeholder("x", (1,), dtypes.string), node("i", "Identity", "x", T=dtypes.string)]
    with pytest.warns(HealdWarning, match="Identity does not run on SIM:0"):
        assert run_on("SIM:0", nodes, "i", {"x": [b"a"]})[0].tolist() == [b"a"]


# Memory


def test_device_memory_is_no_array_and_begins_with_poison(device):
    buffer = device.allocate(12)
    with pytest.raises(TypeError, match="SIM:0 buffer 1 .* copy it out first"):
        np.asarray(buffer)
    host = np.zeros(3, np.float32)
    device.copy_out(buffer, host, 0)
    assert not host.any()  # enqueued, not done
    sync(device)
    assert np.isnan(host).all()


def test_memory_is_first_fit_and_runs_out():
    (device,) = open_devices(memory=1024)
    buffers = [device.allocate(n) for n in (256, 1, 300)]
    assert [b.address for b in buffers] == [0, 256, 512]
    assert device.allocate(1) is None
    device.free(buffers[0])
    device.free(buffers[2])
    assert device.allocate(513) is None  # 768 bytes, in two holes
    assert [device.allocate(n).address for n in (100, 512)] == [0, 512]


def test_a_freed_buffer_serves_enqueued_operations_and_is_reused_behind_them():
    (device,) = open_devices(memory=256)
    buffer, host = upload(device, X), np.zeros(3, np.float32)
    device.copy_out(buffer, host, 0)
    device.free(buffer)
    before = device.native.now
    assert device.allocate(256) is not None  # the host waits for the copies
    assert device.native.now > before
    assert host.tolist() == X.tolist()
    sync(device)
    assert kinds(device) == []


def test_a_step_beyond_the_memory_is_an_error_with_its_node():
    nodes = [placeholder("x", (300,)), node("a", "Neg", "x")]
    with pytest.raises(ResourceExhausted, match="no memory"):
        run_on("SIM:0", nodes, "a", {"x": np.zeros(300)}, memory=1024)


# Mistakes of programs


def test_feeds_and_constants_are_not_copied_where_the_device_reads_the_hosts_memory():
    nodes = [placeholder("x", (3,)), const("c", [2, 0.5, -1]), node("m", "Mul", "x", "c"), node("i", "Identity", "x"),
             node("h", "Log", "m", device="CPU:0"), node("y", "AddV2", "h", "x")]
    copied = {}
    with np.errstate(invalid="ignore"):
        want = [np.log(X * np.float32([2, 0.5, -1])) + X, X]
    for wraps in (False, True):
        on_sim = session(nodes, "SIM:0", wraps=wraps)
        for _ in range(2):
            for got, expected in zip(on_sim.run(["y", "i"], {"x": X}), want, strict=True):
                np.testing.assert_array_equal(got, expected)
        driver = native(on_sim)
        assert driver.report == []
        copied[wraps] = [what for _, what, _, _ in driver.spans].count("copy in on stream 0")
    probes = copied[True] - 2  # what the host computes is copied in each run
    assert copied[False] - probes == 5  # and so are c, once, and x


def test_a_failing_step_releases_its_wrapped_buffers():
    nodes = [placeholder("x", (3,)), node("n", "Neg", "x"), node("m", "Neg", "n")]
    on_sim = session(nodes, "SIM:0", wraps=True)
    on_sim.run("m", {"x": X})
    driver, wrapped = native(on_sim), []
    wrap = driver.memory.wrap
    driver.memory.wrap = lambda host: wrapped.append(wrap(host)) or wrapped[-1]
    driver.fail("launch:1")
    with pytest.raises(Internal, match="planted fault"):
        on_sim.run("m", {"x": X})
    gc.collect()  # the error holds the run
    assert on_sim.run("m", {"x": X}).tolist() == X.tolist()
    assert [buffer.state for buffer in wrapped] == ["returned", "returned"]
    assert driver.report == []


def test_a_write_into_the_hosts_memory_is_found():
    (device,) = open_devices(wraps=True)
    host = np.float32([1, 2, 3])
    out, device_buffer = device.wrap(host), upload(device, X)
    negate(device, device_buffer, out)
    with pytest.raises(Internal, match="write to the host"):
        sync(device)
    assert host.tolist() == [1, 2, 3]


def test_a_copy_into_an_array_that_a_kernel_may_still_read_is_a_race():
    first, second = open_devices(devices=2, wraps=True)
    host = np.float32([1, 2, 3])
    negate(first, first.wrap(host), first.allocate(12))
    second.copy_out(upload(second, X), host, 0)
    for device in (second, first):
        with suppress(Internal):
            sync(device)
    assert kinds(first) + kinds(second) == ["race"]


def test_a_missing_wait_is_found(device):
    host = np.zeros(3, np.float32)
    device.copy_out(upload(device, X, stream=1), host, 2)
    with pytest.raises(Internal, match=r"race: copy out on SIM:0 stream 2 and copy in on SIM:0 stream 1 use SIM:0 "
                                       r"buffer 1 .*nothing orders them"):
        sync(device, 2)
    assert kinds(device) == ["race"]
    assert not host.any()


def test_a_wait_prevents_the_race_and_orders_virtual_time(device):
    host = np.zeros(3, np.float32)
    buffer = upload(device, X, stream=1)
    device.native.wait(2, device.record(1))
    device.copy_out(buffer, host, 2)
    sync(device, 2)
    assert host.tolist() == X.tolist()
    (_, _, start, seconds), (_, _, second, _) = device.native.spans
    assert second >= start + seconds
    assert kinds(device) == []


def test_a_write_while_another_stream_may_read_is_a_race_of_the_later_operation(device):
    buffer = upload(device, X)
    sync(device)
    device.copy_out(buffer, np.zeros(3, np.float32), 1)
    device.copy_in(X, buffer, 2)
    sync(device, 1)
    with pytest.raises(Internal, match="race"):
        sync(device, 2)


def test_a_race_for_the_hosts_memory_between_two_devices_is_found():
    one, two = open_devices(devices=2)
    host = np.zeros(3, np.float32)
    one.copy_out(upload(one, X), host, 0)
    two.copy_in(host, two.allocate(12), 0)
    sync(two)  # which came first, as it happened, and has copied too early
    with pytest.raises(Internal, match="copy out on SIM:0 stream 0 and copy in on SIM:1 stream 0 use the same host"):
        sync(one)
    assert (kinds(one), kinds(two)) == (["race"], [])


def test_devices_wait_for_each_other_and_copy_between_each_other():
    one, two = open_devices(devices=2)
    source, target, host = upload(one, X), two.allocate(12), np.zeros(3, np.float32)
    two.native.wait(0, one.record(0))
    assert two.copy_peer(source, target, 0) is True
    two.copy_out(target, host, 0)
    sync(two)
    assert host.tolist() == X.tolist()
    assert two.copy_peer(np.zeros(3), target, 0) is False
    (stranger,) = open_devices()
    assert two.copy_peer(stranger.allocate(12), target, 0) is False
    negate(two, source, target)
    with pytest.raises(Internal, match="wrong device: launch of Neg .* on SIM:1 uses SIM:0 buffer 1"):
        sync(two)


def test_use_after_free_is_found(device):
    buffer = upload(device, X)
    device.free(buffer)
    negate(device, buffer, device.allocate(12), node="late")
    with pytest.raises(Internal, match=r"use after free: launch of Neg \(late\) uses SIM:0 buffer 1"):
        sync(device)
    assert kinds(device) == ["use after free"]


def test_the_next_wait_reports_a_double_free(device):
    buffer = device.allocate(12)
    device.free(buffer)
    device.free(buffer)
    with pytest.raises(Internal, match="double free: SIM:0 buffer 1 .*freed before"):
        sync(device)
    sync(device)
    assert kinds(device) == ["double free"]
    assert device.native.memory.used == 0


def test_an_operation_beyond_a_buffer_is_found(device):
    device.copy_in(X, device.allocate(8), 0)
    with pytest.raises(Internal, match="overrun: copy in uses 12 bytes of SIM:0 buffer 1"):
        sync(device)


def test_streams_that_wait_for_each_other_are_a_deadlock(device):
    first, second = device.native.event(), device.native.event()
    device.native.wait(1, first)
    device.native.wait(2, second)
    device.native.record(1, second)
    device.native.record(2, first)
    with pytest.raises(Internal, match="deadlock: .*SIM:0 stream 1 waits for .* is recorded; SIM:0 stream 2"):
        sync(device, 1)
    assert kinds(device) == ["deadlock"]
    device.native.reset()
    sync(device, 1)


def test_a_wait_for_an_unrecorded_event_is_a_deadlock_until_it_is_recorded(device):
    event = device.native.event()
    with pytest.raises(Internal, match="waits for an event that was never recorded"):
        device.synchronize(event)
    device.native.record(3, event)
    device.synchronize(event)
    with pytest.raises(InvalidArgument, match="recorded once"):
        device.native.record(3, event)


def test_a_full_stream_makes_the_host_wait_in_virtual_time_and_for_ever_is_a_deadlock():
    (device,) = open_devices(queue=2, enqueue=0.0)
    buffer = device.allocate(12)
    for _ in range(2):
        device.copy_in(X, buffer, 0)
    assert device.native.now == 0
    device.copy_in(X, buffer, 0)
    assert device.native.now == pytest.approx(8e-6, rel=0.01)
    for _ in range(2):
        device.native.wait(1, device.native.event())
    with pytest.raises(Internal, match="deadlock: the host waits for room in SIM:0 stream 1"):
        device.record(1)


def test_mistakes_without_a_wait_are_found_when_the_device_is_closed(device):
    buffer = upload(device, X)
    sync(device)
    device.copy_in(X, buffer, 1)
    device.copy_in(X, buffer, 2)
    device.close()
    assert kinds(device) == ["race"]


STREAMS, BUFFERS = 3, 2
copies = st.tuples(st.sampled_from(["read", "write"]), st.integers(0, STREAMS - 1), st.integers(0, BUFFERS - 1))
waits = st.tuples(st.just("wait"), st.integers(0, STREAMS - 1), st.integers(0, STREAMS - 1))
syncs = st.tuples(st.just("sync"), st.integers(0, STREAMS - 1), st.just(0))


@given(st.lists(st.one_of(copies, copies, waits, syncs), max_size=14), st.booleans())
@settings(max_examples=200)
def test_a_race_is_found_exactly_where_two_accesses_are_not_ordered(plan, slow):
    """The oracle: operations as nodes of a graph, and whether one of two is reached from the other."""
    (device,) = open_devices(copy_latency=1.0 if slow else 0.0)
    buffers = [device.allocate(4) for _ in range(BUFFERS)]
    before: list[set[int]] = []  # for each operation all that comes before it
    streams: list[set[int]] = [set() for _ in range(STREAMS)]
    host: set[int] = set()
    accesses: list[tuple[str, int]] = []
    for what, stream, other in plan:
        if what == "wait":
            device.native.wait(stream, device.record(other))
            streams[stream] |= streams[other] | host
        elif what == "sync":
            with suppress(Internal):
                sync(device, stream)
            host |= streams[stream]
        else:
            array = np.zeros(1, np.float32)
            if what == "read":
                device.copy_out(buffers[other], array, stream)
            else:
                device.copy_in(array, buffers[other], stream)
            streams[stream] |= host
            before.append(set(streams[stream]))
            streams[stream].add(len(accesses))
            accesses.append((what, other))
    device.close()
    races = [(i, j) for j in range(len(accesses)) for i in range(j)
             if accesses[i][1] == accesses[j][1] and "write" in (accesses[i][0], accesses[j][0]) and i not in before[j]]
    assert set(kinds(device)) == ({"race"} if races else set())


# Faults of devices


@pytest.mark.parametrize(("fault", "error"), [
    ("launch:1", Internal), ("copy:1", Internal), ("copy:2", Internal), ("allocate:1", ResourceExhausted),
])
def test_a_call_that_fails_is_a_typed_error_and_the_next_run_works(fault, error):
    on_sim = session([placeholder("x", (3,)), node("a", "Neg", "x"), node("b", "Neg", "a")], "SIM:0")
    step = on_sim.make_callable("b", ["x"])
    driver = native(on_sim)
    driver.fail(fault)
    with pytest.raises(error) as caught:
        step(X)
    assert isinstance(caught.value, HealdError)
    assert step(X).tolist() == X.tolist()
    assert driver.report == []


def test_a_failed_launch_names_its_node_and_its_dependents_have_no_value(device):
    device.native.fail("launch:1")
    x, y, z = upload(device, X), device.allocate(12), device.allocate(12)
    negate(device, x, y, node="first")
    negate(device, y, z, node="second")
    with pytest.raises(Internal, match="planted fault") as caught:
        sync(device)
    assert (caught.value.node, caught.value.op, caught.value.device) == ("first", "Neg", "SIM:0")
    sync(device)  # told once
    host = np.zeros(3, np.float32)
    device.copy_out(z, host, 0)
    with pytest.raises(Internal, match="planted fault"):  # a consumer of the value gets the error
        sync(device)
    negate(device, x, z)
    device.copy_out(z, host, 0)
    sync(device)
    assert host.tolist() == (-X).tolist()


def test_an_error_of_a_kernel_names_its_node():
    nodes = [placeholder("x", (3,)), placeholder("i", (1,), dtypes.int32), const("axis", 0, np.int32),
             Node("g", "GatherV2", ["x", "i", "axis"],
                  attrs={"Tparams": dtypes.float32, "Tindices": dtypes.int32, "Taxis": dtypes.int32}),
             node("h", "Neg", "g")]
    on_sim = session(nodes, "SIM:0")
    with pytest.raises(InvalidArgument, match="not in") as caught:
        on_sim.run("h", {"x": X, "i": [7]})
    assert (caught.value.node, caught.value.op, caught.value.device) == ("g", "GatherV2", "SIM:0")
    assert on_sim.run("h", {"x": X, "i": [2]}).tolist() == [-3]


def test_a_lost_device_stays_lost_until_it_is_reset(device):
    buffer = upload(device, X)
    sync(device)
    device.native.fail("lost:1")
    device.copy_in(X, buffer, 0)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"the device is lost \(device SIM:0\); native.reset"):
            sync(device)
    with pytest.raises(Unavailable):
        device.allocate(1)
    device.native.reset()
    device.free(buffer)  # of the life before: nothing to free, and no fault
    sync(device)
    assert kinds(device) == []
    device.copy_in(X, buffer, 0)
    with pytest.raises(Internal, match="use after reset"):
        sync(device)


def test_each_run_on_a_lost_device_is_an_error():
    on_sim = session([placeholder("x", (3,)), node("a", "Neg", "x")], "SIM:0")
    step = on_sim.make_callable("a", ["x"])
    native(on_sim).fail("lost:2")
    for _ in range(3):
        with pytest.raises(Unavailable, match="lost"):
            step(X)


@pytest.mark.parametrize("text", ["launch", "launch:0", "launch:2.5", "launch:often", "sleep:1", "copy:-0.1"])
def test_a_fault_that_cannot_be_read_makes_the_device_unavailable_with_the_way_to_write_it(text):
    with pytest.raises(InvalidArgument, match="names no fault; write"):
        open_devices(faults=(text,))


# Time


def times(seed: int) -> tuple[float, list[Any], list[int]]:
    (device,) = open_devices(seed=seed, faults=("copy:0.2", "launch:0.1"))
    failed = []
    for i in range(40):
        buffer, out = device.allocate(12), device.allocate(12)
        device.copy_in(X, buffer, i % 3)
        negate(device, buffer, out, i % 3)
        try:
            sync(device, i % 3)
        except Internal:
            failed.append(i)
    return device.native.now, list(device.native.spans), failed


def test_the_same_seed_gives_the_same_faults_at_the_same_times():
    assert times(1) == times(1)
    assert times(1)[2] != times(2)[2]
    assert 5 < len(times(1)[2]) < 30


def test_engines_work_side_by_side_and_each_does_one_thing_at_a_time():
    (device,) = open_devices(enqueue=0.0, copy_latency=1.0, launch_latency=2.0, link_bandwidth=12.0, bandwidth=24.0)
    x, z = upload(device, X), device.allocate(12)
    upload(device, X, stream=1)
    negate(device, x, z)
    sync(device)
    spans = [(engine, start, seconds) for engine, _, start, seconds in device.native.spans]
    assert spans == [("in", 0, 2), ("in", 2, 2), ("compute", 2, 3)]  # latency, and 24 bytes of 24 a second
    assert device.native.now == 5
    sync(device, 1)
    assert device.native.now == 5


def test_the_trace_is_in_virtual_time():
    _, on_sim = run_on("SIM:0", [placeholder("x", (3,)), node("a", "Neg", "x")], "a", {"x": X})
    events = json.loads(json.dumps(native(on_sim).trace()))["traceEvents"][-3:]
    assert [(e["tid"], e["name"]) for e in events] == [
        ("in", "copy in on stream 0"), ("compute", "launch of Neg (a) on stream 0"), ("out", "copy out on stream 0")]
    assert [e["ts"] for e in events] == sorted(e["ts"] for e in events)


@pytest.mark.parametrize("sizes", [(8, 12), (12, 8)])
def test_attach_compares_the_buffers(device: Sim, sizes: tuple[int, int]) -> None:
    meta = TensorMetadata(dtypes.float32, (3,))
    kernel = StreamKernel(device.native, 0, Kernel("Neg", "n", np.negative, (meta,), (meta,), 0))
    kernel.attach((device.allocate(12),), (device.allocate(12),))()
    x, y = map(device.allocate, sizes)
    with pytest.raises(InvalidArgument, match="8 bytes at .* is smaller than float32"):
        kernel.attach((x,), (y,))
