"""Copies on streams of their own go on beside the kernels, and events on the device keep the order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import HealdError, HealdWarning, Internal, InvalidArgument, Unavailable
from heald.runtime.contract.device import STREAM
from heald.runtime.contract.device_queues import ONE_QUEUE, DeviceQueues
from heald.runtime.service.runtime import runtime
from heald_sim import native as sim_native
from heald_sim.device import Sim
from hypothesis import given, settings
from hypothesis import strategies as st

DEVICE = "SIM:0"
SHAPE = (64, 64)
SLOW = {"flops": 2e10, "link_bandwidth": 1e9}  # kernels and copies each take about 20 microseconds


def op(name: str, kind: str, *inputs: str, device: str = DEVICE) -> Any:
    attrs = {"transpose_a": False, "transpose_b": False} if kind == "MatMul" else {}
    return node(name, kind, *inputs, device=device, T="float32", **attrs)


def product(name: str, a: str, b: str) -> Any:
    return op(name, "MatMul", a, b)


def session(nodes: list[Any], **sim: Any) -> heald.Session:
    debug = {"debug": sim.pop("debug")} if "debug" in sim else {}
    config = {"plugin": {"sim": {"seed": 1, "copy_streams": True} | sim}, "plugins": {"block": ["onednn"]}}
    return heald.Session(graph(*nodes), config | debug)


def native(of: heald.Session) -> Any:
    return of.host.open(DEVICE).native  # type: ignore[attr-defined]


def arrays(count: int) -> list[Any]:
    generator = np.random.default_rng(0)
    return [(generator.normal(size=SHAPE) / 8).astype(np.float32) for _ in range(count)]


FEEDS = [placeholder(name, SHAPE, "float32") for name in "xyz"]
CHAIN = [*FEEDS, product("a", "x", "x"), product("b", "a", "a"), op("c", "AddV2", "b", "y"), product("d", "c", "c"),
         op("e", "Neg", "d"), product("f", "e", "e"), product("g", "f", "z"), product("h", "g", "g")]
FETCHES = ["a:0", "c:0", "h:0"]


def run_chain(**sim: Any) -> tuple[list[Any], Any]:
    """Run twice; return the results, and the driver with the spans of the second run."""
    of = session(CHAIN, **SLOW | sim)
    feeds = dict(zip("xyz", arrays(3), strict=True))
    of.run(FETCHES, feeds)
    native(of).spans.clear()
    return of.run(FETCHES, feeds), native(of)


def spans(of: Any, engine: str) -> list[tuple[float, float]]:
    return [(start, start + seconds) for name, _, start, seconds in of.spans if name == engine]


def overlap(some: list[tuple[float, float]], others: list[tuple[float, float]]) -> float:
    return sum(max(0.0, min(end, last) - max(start, first)) for start, end in some for first, last in others)


@pytest.mark.parametrize("queues", [
    3, "copy_in", [1], {"copy_in": "1"}, {"copy_in": True}, {"copy_out": -1}, {"copy_out": 1.0}, {"copy": 1}, {1: 1},
    {"copy_in": None}, {"copy_in": 1 << 20},
])
def test_wrong_queues_are_refused(queues: Any) -> None:
    with pytest.raises(InvalidArgument):
        DeviceQueues.of(SimpleNamespace(attributes={"queues": queues}, wait=print))  # type: ignore[arg-type]


@pytest.mark.parametrize(("attributes", "members"), [
    ({"queues": {"copy_in": 1}}, {}),
    ({"queues": {"copy_in": 1}, "host_visible": True}, {"wait": print}),
])
def test_queues_need_a_wait_and_memory_of_the_device(attributes: Any, members: Any) -> None:
    with pytest.raises(InvalidArgument, match="'queues' is given"):
        DeviceQueues.of(SimpleNamespace(attributes=attributes, **members))


@pytest.mark.parametrize("attributes", [{}, {"queues": None}, {"queues": {}}])
def test_a_device_that_says_nothing_has_one_queue(attributes: Any) -> None:
    queues = DeviceQueues.of(SimpleNamespace(attributes=attributes))  # type: ignore[arg-type]
    assert queues is ONE_QUEUE
    assert queues.beside == ()


def test_a_queue_may_serve_both_directions_or_one() -> None:
    def beside(**queues: int) -> tuple[int, ...]:
        return DeviceQueues.of(SimpleNamespace(attributes={"queues": queues}, wait=print)).beside  # type: ignore[arg-type]

    assert beside(copy_in=1, copy_out=1) == (1,)
    assert beside(copy_out=2) == (2,)
    assert beside(copy_in=STREAM) == ()


def test_a_device_with_wrong_queues_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Sim, "wait")
    with pytest.warns(HealdWarning, match="no method 'wait'"):
        records = runtime({"plugin": {"sim": {"copy_streams": True}}}).host.records("SIM")
    assert [record.status for record in records] == ["unavailable"]


def test_copies_go_on_beside_kernels() -> None:
    expected, before = run_chain(copy_streams=False)
    results, after = run_chain()
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, value)
    assert after.report == []
    kernels = spans(after, "compute")
    assert overlap(spans(before, "in") + spans(before, "out"), spans(before, "compute")) == 0
    first, *others = spans(after, "in")
    assert overlap([first], kernels) == 0  # the first kernel needs it
    assert overlap(others, kernels) == pytest.approx(sum(end - start for start, end in others))
    *early, last = spans(after, "out")
    assert overlap([last], kernels) == 0
    assert overlap(early, kernels) > 0.9 * sum(end - start for start, end in early)

    def duration(of: Any) -> float:
        starts_and_ends = [span for engine in ("in", "compute", "out") for span in spans(of, engine)]
        return max(end for _, end in starts_and_ends) - min(start for start, _ in starts_and_ends)

    assert duration(after) < 0.75 * duration(before)


def test_a_device_with_one_queue_is_asked_for_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sim, "wait", None)
    results, of = run_chain(copy_streams=False)
    assert of.report == []
    assert len(results) == len(FETCHES)


@pytest.mark.parametrize("lost", ["all", "of kernels", "of copies"])
def test_each_kind_of_fence_is_needed(monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    wait = Sim.wait

    def wait_for_some(device: Sim, stream: Any, event: Any) -> None:
        if lost != "all" and (stream == STREAM) == (lost == "of copies"):
            wait(device, stream, event)

    monkeypatch.setattr(Sim, "wait", wait_for_some)
    with pytest.raises(Internal, match="race"):
        run_chain()


def test_memory_is_used_again_only_behind_the_copy_of_its_value() -> None:
    names = [f"n{i}" for i in range(6)]
    nodes = [FEEDS[0], *(product(b, a, a) for a, b in pairwise(["x", *names]))]
    of = session(nodes, flops=2e12, link_bandwidth=1e8)  # a copy takes as long as many kernels
    results = of.run([f"{name}:0" for name in names], {"x": arrays(1)[0]})
    driver = native(of)
    assert driver.report == []
    assert len(results) == len(names)
    buffers = driver.memory.peak // (4 * SHAPE[0] * SHAPE[1])
    assert buffers < len(names) + 1  # so some buffer was used twice
    ends = [end for _, end in spans(driver, "out")]
    assert any(start >= ends[0] for start, _ in spans(driver, "compute"))  # a kernel waited for the copy


@st.composite
def programs(draw: Any) -> tuple[list[Any], list[str]]:
    values = ["x", "y", "z"]
    nodes = list(FEEDS)
    for number in range(draw(st.integers(1, 14))):
        kind, count = draw(st.sampled_from([("Neg", 1), ("Relu", 1), ("AddV2", 2), ("Mul", 2), ("MatMul", 2)]))
        inputs = [draw(st.sampled_from(values[-6:])) for _ in range(count)]
        device = "CPU:0" if draw(st.integers(0, 7)) == 7 else DEVICE
        nodes.append(op(f"n{number}", kind, *inputs, device=device))
        values.append(f"n{number}")
    fetches = draw(st.lists(st.sampled_from(values[3:]), min_size=1, max_size=5))
    return nodes, [f"{name}:0" for name in fetches]


@given(programs(), st.integers(0, 1 << 30), st.booleans())
@settings(max_examples=60, deadline=None)
def test_random_programs_are_right_on_random_machines(program: Any, seed: int, wraps: bool) -> None:
    nodes, fetches = program
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    machine = {"flops": 10 ** random.uniform(9, 13), "link_bandwidth": 10 ** random.uniform(8, 11),
               "bandwidth": 10 ** random.uniform(9, 12), "launch_latency": 10 ** random.uniform(-8, -4),
               "copy_latency": 10 ** random.uniform(-8, -4), "queue": random.choice([1, 2, 3, 1024]),
               "enqueue": 10 ** random.uniform(-9, -5), "wraps": wraps}
    feeds = dict(zip("xyz", arrays(3), strict=True))
    expected = session(nodes, copy_streams=False).run(fetches, feeds)
    of = session(nodes, **machine)
    for _ in range(3):
        for result, value in zip(of.run(fetches, feeds), expected, strict=True):
            np.testing.assert_array_equal(result, value)
    assert native(of).report == []


def test_several_threads_share_the_streams() -> None:
    of = session(CHAIN, **SLOW)
    feeds = [dict(zip("xyz", np.asarray(arrays(3)) + np.float32(number), strict=True)) for number in range(4)]
    expected = [of.run(FETCHES, feed) for feed in feeds]
    with ThreadPoolExecutor(4) as pool:
        for index, results in enumerate(pool.map(lambda i: of.run(FETCHES, feeds[i % 4]), range(40))):
            for result, value in zip(results, expected[index % 4], strict=True):
                np.testing.assert_array_equal(result, value)
    assert native(of).report == []


@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("kind", ["copy", "lost"])
def test_a_failure_on_any_queue_reaches_the_step(kind: str, number: int) -> None:
    of = session(CHAIN, **SLOW)
    feeds = dict(zip("xyz", arrays(3), strict=True))
    expected = of.run(FETCHES, feeds)
    native(of).fail(f"{kind}:{number}")
    with pytest.raises(HealdError, match="planted fault" if kind == "copy" else "lost") as raised:
        of.run(FETCHES, feeds)
    assert isinstance(raised.value, Internal if kind == "copy" else Unavailable)
    if kind == "copy":
        for result, value in zip(of.run(FETCHES, feeds), expected, strict=True):
            np.testing.assert_array_equal(result, value)
    else:
        with pytest.raises(Unavailable):
            of.run(FETCHES, feeds)


def test_an_error_of_wait_is_the_device_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise Unavailable("the driver is gone")

    monkeypatch.setattr(sim_native.Native, "wait", refuse)
    with pytest.raises(Unavailable, match="the driver is gone") as raised:
        run_chain()
    assert raised.value.device == DEVICE


@pytest.mark.parametrize("debug", [{"synchronous": True}, {"poison": True}])
def test_the_test_modes_keep_to_one_stream(debug: dict[str, bool]) -> None:
    expected, _ = run_chain(copy_streams=False)
    results, of = run_chain(debug=debug)
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, value)
    assert of.report == []
    assert {what for _, what, _, _ in of.spans if "copy" in what} == {"copy in on stream 0", "copy out on stream 0"}


def test_a_trace_times_copies_on_their_stream() -> None:
    of = session(CHAIN, **SLOW)
    feeds = dict(zip("xyz", arrays(3), strict=True))
    expected = of.run(FETCHES, feeds)
    metadata = heald.RunMetadata()
    results = of.run(FETCHES, feeds, options=heald.RunOptions(trace=True), metadata=metadata)
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, value)
    assert native(of).report == []


def test_values_that_return_to_the_host_and_back_are_right() -> None:
    nodes = [*FEEDS, product("a", "x", "y"), op("b", "Neg", "a", device="CPU:0"), product("c", "b", "a"),
             op("d", "AddV2", "c", "z")]
    feeds = dict(zip("xyz", arrays(3), strict=True))
    expected = session(nodes, copy_streams=False).run(["a:0", "d:0"], feeds)
    of = session(nodes)
    for _ in range(2):
        for result, value in zip(of.run(["a:0", "d:0"], feeds), expected, strict=True):
            np.testing.assert_array_equal(result, value)
    assert native(of).report == []
