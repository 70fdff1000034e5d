"""A kernel of a device may have its results in host memory: no copy to the device and back."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from harness.eager_runtime import core
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes
from plugins_for_tests import plugin

pytestmark = pytest.mark.usefixtures("graphs_as_written")
PLUGIN = plugin("scratch")
CONFIG = {"plugins": {"load": [PLUGIN]}, "placement": {"fallback": "error"}}
X = np.float32([[1, -2, 3], [4, 5, 6]])
SIM = "SIM:0"


def copies(session, fetches, feeds, shapes):
    program = session.prepare(fetches, feeds).executable(shapes)
    return sorted(bound.call.attrs["to"] for bound in program.layout.calls if bound.call.code == "heald.copy")


def cast(name, source, device, to="float32"):
    return Node(name, "Cast", [source], device=device, attrs={
        "SrcT": dtypes.int32, "DstT": dtypes.named(to), "Truncate": False})


def test_a_result_in_host_memory_is_not_copied_out():
    net = graph(placeholder("x", (2, 3)), node("n", "Neg", "x", device=SIM), node("s", "Test>Dims", "n", device=SIM))
    with heald.Session(net, CONFIG) as session:
        for _ in range(3):
            assert session.run("s", {"x": X}).tolist() == [2, 3]
        assert copies(session, ["s"], ["x"], ((2, 3),)) == ["device"]
        assert session.host.open(SIM).native.report == []


def test_a_result_in_host_memory_belongs_to_the_user():
    net = graph(placeholder("x", (2, 3)), node("n", "Neg", "x", device=SIM), node("s", "Test>Dims", "n", device=SIM))
    with heald.Session(net, CONFIG) as session:
        step = session.make_callable(["s", "n"], ["x"])
        first = step(X)[0]
        first[:] = 99
        assert step(X)[0].tolist() == [2, 3]
        assert first.tolist() == [99, 99]


@pytest.mark.parametrize("reader", [SIM, "CPU:0", "SIM:1"])
def test_readers_on_every_device_get_a_result_in_host_memory(reader):
    net = graph(placeholder("x", (2, 3)), node("n", "Neg", "x", device=SIM), node("s", "Test>Dims", "n", device=SIM),
                cast("f", "s", reader), node("y", "Square", "f", device=reader))
    with heald.Session(net, CONFIG | {"plugin": {"sim": {"devices": 2}}}) as session:
        for _ in range(2):
            assert session.run("y", {"x": X}).tolist() == [4, 9]
        assert copies(session, ["y"], ["x"], ((2, 3),)) == (
            ["device"] if reader == "CPU:0" else ["device", "device", "host"])


@pytest.mark.parametrize("settings", [{}, {"debug": {"poison": True}}, {"debug": {"synchronous": True}}])
@pytest.mark.parametrize("source", ["fed", "device", "host kernel"])
def test_index_arithmetic_reads_and_writes_host_memory(source, settings):
    first = {"fed": [], "device": [node("a", "Neg", "x", device=SIM, T="int32")],
             "host kernel": [node("a", "Test>Index", "x", "x", device=SIM, T="int32")]}[source]
    net = graph(placeholder("x", (3,), "int32"), *first,
                node("i", "Test>Index", "a" if first else "x", "x", device=SIM, T="int32"),
                node("y", "Test>Index", "i", "i:1", device=SIM, T="int32"))
    x = np.int32([1, -2, 3])
    a = {"fed": x, "device": -x, "host kernel": x + x}[source]
    with heald.Session(net, CONFIG | settings) as session:
        for _ in range(3):
            total, product = session.run(["y", "y:1"], {"x": x})
            assert total.tolist() == (a + x + a * x).tolist()
            assert product.tolist() == ((a + x) * a * x).tolist()
        assert copies(session, ["y", "y:1"], ["x"], ((3,),)) == (["device", "host"] if source == "device" else [])


def test_a_kernel_with_results_in_host_memory_waits_for_its_control_inputs():
    net = graph(placeholder("x", (2, 3)), node("n", "Neg", "x", device=SIM),
                Node("s", "Test>Dims", ["x", "^n"], device=SIM, attrs={"T": dtypes.float32}))
    with heald.Session(net, CONFIG) as session:
        assert session.run("s", {"x": X}).tolist() == [2, 3]


def test_kernels_around_one_with_results_in_host_memory_are_captured_apart():
    net = graph(placeholder("x", (2, 3)), *(
        node(f"n{i}", "Neg", f"n{i - 1}" if i else "x", device=SIM) for i in range(6)),
        node("s", "Test>Dims", "n2", device=SIM))
    with heald.Session(net, CONFIG) as session:
        for _ in range(3):
            s, y = session.run(["s", "n5"], {"x": X})
            assert s.tolist() == [2, 3]
            assert y.tolist() == X.tolist()
        told = session.prepare(["s", "n5"], ["x"]).executable(((2, 3),)).algorithms()["s"]
        assert "its results are in host memory" in told


def test_an_eager_op_and_a_function_have_the_results_on_the_device_of_the_handle():
    eager = core(load=(PLUGIN,))
    handle = eager.execute("Test>Dims", X, device=SIM)
    assert handle.device == SIM
    assert handle.numpy().tolist() == [2, 3]
    a = np.int32([1, 2])
    total, product = eager.execute("Test>Index", a, a, device=SIM)
    assert (total.numpy().tolist(), product.numpy().tolist()) == ([2, 4], [1, 4])


def test_a_compiled_program_keeps_results_in_host_memory(tmp_path):
    net = graph(placeholder("x", (2, 3)), node("n", "Neg", "x", device=SIM), node("s", "Test>Dims", "n", device=SIM))
    heald.graphdef.dump(net, tmp_path / "net.pb")
    model = heald.load(tmp_path / "net.pb", inputs=["x"], outputs=["s"], config=CONFIG)
    assert model(X).tolist() == [2, 3]
