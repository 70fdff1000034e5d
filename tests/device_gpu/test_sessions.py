"""Sessions on GPUs of the fake driver: captured launches, networks, copies between GPUs, arrays of other libraries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.mobilenet import mobilenet
from builders.recorded_layers import recorded_layers
from fake_cuda.foreign_library import ForeignTensor
from harness.device_pairs import run_traced
from heald.api import STREAM, Node, dtypes
from heald.runtime.service.runtime import runtime

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
STRICT = {"placement": {"fallback": "error"}}
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def chain(*devices: str) -> Any:
    """Exp(Neg(Exp(...))) of x, a node on each device; the last is `last`."""
    names = [*(f"n{i}" for i in range(len(devices) - 1)), "last"]
    return graph(placeholder("x", (3, 4)), *(
        node(name, ("Exp", "Neg")[i % 2], before, device=device)
        for i, (name, before, device) in enumerate(zip(names, ["x", *names], devices, strict=False))))


def calls(fake: ModuleType, run: Any) -> Counter[str]:
    before = fake.state.calls.copy()
    run()
    calls_made: Counter[str] = fake.state.calls - before
    return calls_made


def test_a_static_partition_is_captured_after_its_first_run(fake: ModuleType) -> None:
    with heald.Session(chain("GPU:0", "GPU:0", "GPU:0"), STRICT | {"plugins": {"block": ["simplify"]}}) as session:
        first, *others = [calls(fake, lambda: session.run("last", {"x": X})) for _ in range(3)]
        assert first["launch"] >= 1
        for later_calls in others:
            assert later_calls["launch"] == 0 or first["launch"] == 1  # a single fused kernel needs no graph
        np.testing.assert_allclose(session.run("last", {"x": X + 1}), np.exp(-np.exp(X + 1)), rtol=1e-5)


def test_digits_agree_with_the_cpu_and_take_one_launch(fake: ModuleType) -> None:
    images = np.load(DIGITS / "test.npz")["image"][:8]
    expected = heald.load(DIGITS / "frozen.pb", device="CPU:0")(images)
    model = heald.load(DIGITS / "frozen.pb", device="GPU:0")
    model(images)
    again = calls(fake, lambda: model(images))
    assert (again["launch"], again["replay"]) == (0, 1)
    for name, value in model(images).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)


def test_mobilenet_agrees_with_the_cpu(fake: ModuleType) -> None:
    images = np.random.default_rng(1).normal(size=(1, 32, 32, 3)).astype(np.float32)
    net = mobilenet(32)
    with heald.Session(net, device="CPU:0") as on_cpu, heald.Session(net, STRICT, device="GPU:0") as session:
        expected = on_cpu.run("logits", {"x": images})
        for _ in range(2):  # kernels by themselves, then captured
            apart = np.abs(session.run("logits", {"x": images}) - expected).max()
            assert apart < 1e-3 * expected.std()


RECORDED = recorded_layers("recurrent_variants.json")


@pytest.mark.parametrize("name", [name for name in RECORDED if {"lstm", "gru"} & {*name.split("_")}])
def test_a_recurrent_layer_is_a_kernel_of_the_gpu(fake: ModuleType, name: str) -> None:
    layer = RECORDED[name]
    with heald.Session(layer.graph, {"placement": {"fallback": "allow"}}, device="GPU:0") as session:
        for _ in range(3):  # kernels by themselves, then captured
            results, trace = run_traced(session, layer.outputs, layer.feeds)
            for result, recorded in zip(results, layer.results, strict=True):
                np.testing.assert_allclose(np.ravel(result), recorded, rtol=0, atol=1e-5)
    sequences = {(event.call.code, event.device) for event in trace.events if "Sequence" in event.call.code}
    assert sequences == {(f"cuda.{op}", "GPU:0") for op in layer.sequence_ops()}


def test_explain_says_how_each_kernel_is_launched(fake: ModuleType) -> None:
    model = heald.load(DIGITS / "frozen.pb", device="GPU:0")
    prepared = model.session.prepare(["logits:0"], ["image:0"])
    algorithms = set(prepared.executable(((1, 8, 8, 1),)).algorithms().values())
    assert any("kernels in one launch" in algorithm for algorithm in algorithms)


def test_a_value_goes_from_gpu_to_gpu_without_the_host(fake: ModuleType) -> None:
    with heald.Session(chain("GPU:0", "GPU:1", "GPU:0"), STRICT) as session:
        for _ in range(2):
            calls_made = calls(fake, lambda: session.run("last", {"x": X}))
            assert calls_made["copy"] == 4  # in, two between the GPUs, out
        np.testing.assert_allclose(session.run("last", {"x": X}), np.exp(-np.exp(X)), rtol=1e-5)


def test_an_array_on_the_gpu_is_a_feed_without_a_copy(fake: ModuleType) -> None:
    gpu = runtime().host.open("GPU:0")
    buffer = gpu.allocate(X.nbytes)
    gpu.copy_in(X, buffer, STREAM)
    gpu.synchronize(gpu.record(STREAM))
    tensor = ForeignTensor(buffer.pointer, X.shape)
    with heald.Session(chain("GPU:0", "GPU:0"), STRICT) as session:
        for _ in range(2):
            assert calls(fake, lambda: session.run("last", {"x": tensor}))["copy"] == 1  # the result's
        np.testing.assert_allclose(session.run("last", {"x": tensor}), -np.exp(X), rtol=1e-5)
        np.testing.assert_allclose(session.run("last", {"x": X + 1}), -np.exp(X + 1), rtol=1e-5)  # of the host
        with pytest.raises(heald.errors.InvalidArgument, match=r"feed 'x(:0)?' is int32\[3,4\] in a device's memory"):
            session.run("last", {"x": ForeignTensor(buffer.pointer, X.shape, "int32")})
        with pytest.raises(heald.errors.InvalidArgument, match="in the memory of another device"):
            session.run("last", {"x": ForeignTensor(buffer.pointer, X.shape, ordinal=1)})
    gpu.free(buffer)


def test_an_array_on_the_gpu_that_the_host_reads_is_refused(fake: ModuleType) -> None:
    message = "node 'last' reads it on the host; give an array of NumPy"
    with (heald.Session(chain("CPU:0")) as session, pytest.raises(heald.errors.InvalidArgument, match=message)):
        session.run("last", {"x": ForeignTensor(64, X.shape)})


def test_a_lost_gpu_is_an_error_that_names_it_in_every_later_run(fake: ModuleType) -> None:
    with heald.Session(chain("GPU:0", "GPU:0"), STRICT) as session:
        session.run("last", {"x": X})
        fake.plant("synchronize")
        for _ in range(2):
            with pytest.raises(heald.errors.Unavailable, match="the device was lost") as raised:
                session.run("last", {"x": X})
            assert raised.value.device == "GPU:0"


def test_memory_that_is_short_is_told_with_figures(fake: ModuleType) -> None:
    config = STRICT | {"plugin": {"cuda": {"memory": 500}}}
    net = graph(placeholder("x", (100,)), node("y", "Exp", "x", device="GPU:0"))
    with (heald.Session(net, config) as session,
          pytest.raises(heald.errors.ResourceExhausted, match="400 bytes, .*: 400 of 500 bytes in use")):
        session.run("y", {"x": np.ones(100, np.float32)})


def test_kernels_with_scratch_are_captured(fake: ModuleType) -> None:
    x, w = np.ones((1, 3), np.float32), [const(f"w{i}", np.full(shape, 0.5)) for i, shape in enumerate(
        ((2, 4), (2, 4), (7, 16), (4,), (4,), (4,), (16,)))]
    cell = Node("cell", "LSTMBlockCell", ["x2", *(weight.name for weight in w)], device="GPU:0", attrs={
        "T": dtypes.float32, "forget_bias": 1.0, "cell_clip": 3.0, "use_peephole": False})
    net = graph(placeholder("x", (2, 3)), node("x2", "Neg", "x", device="GPU:0"), *w, cell)
    fetches = [f"cell:{i}" for i in range(7)]
    with heald.Session(net, device="CPU:0") as on_cpu, heald.Session(net, STRICT) as session:
        feeds = {"x": np.repeat(x, 2, 0)}
        expected = on_cpu.run(fetches, feeds)
        first, again = (calls(fake, lambda: session.run(fetches, feeds)) for _ in range(2))
        assert (first["launch"] >= 3, again["launch"], again["replay"]) == (True, 0, 1)
        for got, want in zip(session.run(fetches, feeds), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize(("op", "expected"), [("Shape", [2, 3]), ("Size", 6), ("Rank", 2)])
def test_a_shape_is_in_host_memory_and_needs_no_launch_and_no_copy(fake: ModuleType, op: str, expected: object) -> None:
    types = {"T": dtypes.float32} | ({} if op == "Rank" else {"out_type": dtypes.int32})
    net = graph(placeholder("x", (2, 3)), node("n", "Neg", "x", device="GPU:0"),
                Node("s", op, ["n", "^n"], device="GPU:0", attrs=types))  # a control edge, so that link folds nothing
    with heald.Session(net, STRICT) as session:
        x = np.ones((2, 3), np.float32)
        assert session.placement()["s"].device == "GPU:0"
        assert session.run("s", {"x": x}).tolist() == expected
        calls_by_code = [bound.call.code for bound in session.prepare(["s"], ["x"]).executable(((2, 3),)).layout.calls]
        assert [code for code in calls_by_code if code == "heald.copy"] == ["heald.copy"]  # of x, to the GPU
        assert calls(fake, lambda: session.run("s", {"x": x}))["launch"] == 1


def test_a_launch_with_too_many_blocks_is_declined_with_the_reason(fake: ModuleType) -> None:
    perm = Node("perm", "Const", attrs={"dtype": dtypes.int32, "value": np.int32([1, 0])})
    y = Node("y", "Transpose", ["x", "perm"], device="GPU:0", attrs={"T": dtypes.uint8, "Tperm": dtypes.int32})
    net = graph(placeholder("x", (3, None), dtypes.uint8), perm, y)
    with heald.Session(net, STRICT) as session:
        np.testing.assert_array_equal(session.run("y", {"x": np.eye(3, 4, dtype="u1")}), np.eye(4, 3))
        with pytest.raises(heald.errors.HealdError, match="more than 65535 blocks"):
            session.run("y", {"x": np.zeros((3, 4_200_000), "u1")})
