"""Groups on a device with memory of its own have several results there, and order and memory are those of kernels."""

from __future__ import annotations

from functools import partial
from random import Random

import heald
import numpy as np
import pytest
from builders.compilers import FUNCTIONS, NumPyCompiler, runtime_with
from builders.graphs import const, graph, node, placeholder
from heald.errors import Internal, PluginError
from heald.runtime.program.bef import file as bef
from heald.runtime.service.compiled_model import LoadedCompiledModel
from heald_sim.native import Kernel
from hypothesis import given, settings
from hypothesis import strategies as st

DEVICE = "SIM:0"
SHAPE = (8, 16)


class SimCompiler(NumPyCompiler):
    """Launches the NumPy function of a group as one kernel of the simulator."""

    def kernel(self, group):
        compute = super().kernel(group)
        metas = tuple(info.meta for info in group.inputs)
        return partial(self.launch, group, Kernel("group", group.node, compute, metas, group.outputs, 1e3))

    @staticmethod
    def launch(group, kernel, *buffers):
        group.device.native.launch(group.stream, kernel, buffers)


class RandomCompiler(SimCompiler):
    def __init__(self, seed):
        random = Random(seed)  # noqa: S311 - a test
        super().__init__(lambda part: part.split(
            name for name, one in part.nodes.items() if one.op.name in FUNCTIONS and random.random() < 0.7))


def on_device(name, op, *inputs):
    return node(name, op, *inputs, device=DEVICE, T="float32")


def session(nodes, compiler, **sim):
    return heald.Session(graph(*nodes), runtime_with(
        compiler, config={"plugin": {"sim": sim}, "plugins": {"block": ["onednn", "simplify"]}}, device_type="SIM"))


def report(of):
    return of.host.open(DEVICE).native.report


def codes(of, fetches, feeds, shapes):
    return [bound.call.code for bound in of.prepare(fetches, feeds).executable(shapes).layout.calls]


NODES = [placeholder("x", SHAPE), const("c", np.arange(16)), on_device("a", "Mul", "x", "c"),
         on_device("b", "Neg", "a"), on_device("d", "AddV2", "b", "x"), on_device("e", "Square", "b")]
X = np.random.default_rng(0).standard_normal(SHAPE, np.float32)


@pytest.mark.parametrize("sim", [{}, {"copy_streams": True}, {"wraps": True}, {"queue": 1}], ids=str)
@pytest.mark.parametrize("fetches", [["d"], ["a", "d"], ["a", "b", "d", "e"], ["e", "e", "b"]])
def test_a_group_has_several_results_in_device_memory(sim, fetches):
    compiler = SimCompiler()
    with session(NODES, compiler, **sim) as of:
        for turn in range(3):
            x = X + turn
            a = x * np.arange(16, dtype=np.float32)
            want = {"a": a, "b": -a, "d": x - a, "e": a * a}
            for result, name in zip(of.run(fetches, {"x": x}), fetches, strict=True):
                np.testing.assert_array_equal(result, want[name])
        assert report(of) == []
        assert codes(of, fetches, ["x"], (SHAPE,)).count("tiny0.group0") == 1
    assert len(compiler.groups[-1].results) == len({*fetches})
    assert {part.device for part in compiler.parts} == {DEVICE}


def test_results_of_a_group_are_read_by_kernels_a_group_and_the_host():
    nodes = [*NODES, on_device("t", "Tanh", "a"), on_device("f", "Sub", "t", "b"), on_device("g", "Maximum", "f", "d"),
             node("h", "Exp", "b", device="CPU:0"), node("z", "AddV2", "h", "g", device="CPU:0")]
    a = X * np.arange(16, dtype=np.float32)
    want = np.exp(-a) + np.maximum(np.tanh(a) + a, X - a)
    with session(nodes, SimCompiler(), copy_streams=True) as of:
        for _ in range(3):
            np.testing.assert_allclose(of.run("z", {"x": X}), want, rtol=1e-5)
        assert report(of) == []
        assert {"tiny0.group0", "tiny0.group1"} <= {*codes(of, ["z"], ["x"], (SHAPE,))}


def test_a_failing_group_leaves_the_device_usable():
    with session(NODES, SimCompiler()) as of:
        expected = of.run(["a", "d"], {"x": X})
        of.host.open(DEVICE).native.fail("launch:1")
        with pytest.raises(Internal, match="planted fault"):
            of.run(["a", "d"], {"x": X})
        for result, value in zip(of.run(["a", "d"], {"x": X}), expected, strict=True):
            np.testing.assert_array_equal(result, value)


def test_a_group_of_several_results_is_in_a_compiled_file(tmp_path):
    path = tmp_path / "model.pb"
    heald.graphdef.dump(graph(*NODES), path)
    runtime = runtime_with(SimCompiler(), device_type="SIM")
    from heald.graphs.session.ahead_of_time import compile_model

    compiled = bef.loads(bef.dumps(compile_model(path, outputs=["a", "d"], config=runtime)))
    a = X * np.arange(16, dtype=np.float32)
    for config in (runtime, None):
        results = LoadedCompiledModel(compiled, config=config)(X)
        np.testing.assert_array_equal(results["a"], a)
        np.testing.assert_array_equal(results["d"], X - a)


@st.composite
def programs(draw):
    nodes, values = [placeholder("x", SHAPE), placeholder("y", SHAPE)], ["x", "y"]
    for number in range(draw(st.integers(2, 12))):
        op = draw(st.sampled_from(["AddV2", "Mul", "Sub", "Maximum", "Neg", "Abs", "Relu", "Square"]))
        count = 2 if op in ("AddV2", "Mul", "Sub", "Maximum") else 1
        inputs = [draw(st.sampled_from(values[-6:])) for _ in range(count)]
        is_on_host = draw(st.integers(0, 7)) == 7
        nodes.append(node(f"n{number}", op, *inputs, device="CPU:0" if is_on_host else DEVICE, T="float32"))
        values.append(f"n{number}")
    return nodes, draw(st.lists(st.sampled_from(values[2:]), min_size=1, max_size=4))


@given(programs(), st.integers(), st.sampled_from([{}, {"copy_streams": True}, {"wraps": True}]))
@settings(max_examples=50, deadline=None)
def test_random_groups_on_a_device_change_no_value(program, seed, sim):
    nodes, fetches = program
    feeds = {"x": X / 4, "y": X[::-1] / 4}
    config = {"plugins": {"block": ["onednn", "simplify"]}, "plugin": {"sim": sim}}
    with np.errstate(all="ignore"), heald.Session(graph(*nodes), config) as plain:
        expected = plain.run(fetches, feeds)
    with np.errstate(all="ignore"), session(nodes, RandomCompiler(seed), **sim) as of:
        for _ in range(2):
            for result, value in zip(of.run(fetches, feeds), expected, strict=True):
                np.testing.assert_array_equal(result, value)
        assert report(of) == []


@pytest.mark.parametrize("returned", [np.zeros(SHAPE), [np.zeros(SHAPE)] * 2])
def test_a_kernel_that_returns_arrays_is_the_compilers_fault(returned):
    class Returning(SimCompiler):
        def kernel(self, group):
            return lambda *buffers: returned

    with session(NODES, Returning()) as of, pytest.raises(PluginError) as caught:
        of.run(["a", "d"], {"x": X})
    assert caught.value.plugin == "tiny_compilers"
