"""Parts of a tensor in a device's memory are buffers over the tensor's own, and no result changes by that."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import graph, placeholder
from heald.api import Node, dtypes
from heald.errors import HealdError, HealdWarning, PluginError
from heald.runtime.executor.calls.part_view_call import PartViewCall
from heald.runtime.service.runtime import runtime
from heald_sim.config import Config
from heald_sim.device import Sim
from heald_sim.machine import Machine
from heald_sim.memory import Part
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("graphs_as_written")
DEVICE = "SIM:0"
F, INT = dtypes.float32, dtypes.int32
SHAPE = (4, 4, 16)  # a quarter of it has 256 bytes


def on_device(name, kind, *inputs, device=DEVICE, **attrs):
    return Node(name, kind, [*inputs], attrs={"T": F} | attrs, device=device)


def integers(name, values):
    return Node(name, "Const", attrs={"dtype": INT, "value": np.array(values, np.int32)})


def unpack(name, source, count, axis=0):
    return [on_device(name, "Unpack", source, num=count, axis=axis)]


def split(name, source, count, axis=0):
    return [integers(f"{name}/axis", axis), on_device(name, "Split", f"{name}/axis", source, num_split=count)]


def slice_of(name, source, begin, size):
    return [integers(f"{name}/begin", begin), integers(f"{name}/size", size),
            on_device(name, "Slice", source, f"{name}/begin", f"{name}/size", Index=INT)]


def strided(name, source, begin, end, strides, **masks):
    values = {"begin": begin, "end": end, "strides": strides}
    flags = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0) | masks
    return [*(integers(f"{name}/{key}", value) for key, value in values.items()),
            on_device(name, "StridedSlice", source, *(f"{name}/{key}" for key in values), Index=INT, **flags)]


def session(nodes, **sim):
    debug = {"debug": sim.pop("debug")} if "debug" in sim else {}
    return heald.Session(graph(*nodes), {"plugin": {"sim": sim}, "plugins": {"block": ["onednn", "simplify"]}} | debug)


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def views(of, fetches, shape=SHAPE):
    layout = of.prepare(fetches, ["x"]).executable((shape,)).layout
    return sum(isinstance(bound, PartViewCall) and bound.device.type != "CPU" for bound in layout.calls)


def report(of):
    return of.host.open(DEVICE).native.report


CASES = [
    (lambda: unpack("p", "y", 4), (4, 64), list, 1),
    (lambda: unpack("p", "y", 2, 1), (3, 2, 64), lambda y: [y[:, 0], y[:, 1]], 0),  # gaps between the rows
    (lambda: split("p", "y", 2), (4, 32), lambda y: np.split(y, 2), 1),
    (lambda: split("p", "y", 2), (4, 16), lambda y: np.split(y, 2), 0),  # the second begins at 128 bytes
    (lambda: slice_of("p", "y", [1, 0], [2, 64]), (4, 64), lambda y: [y[1:3]], 1),
    (lambda: slice_of("p", "y", [0, 0], [2, 3]), (4, 3), lambda y: [y[:2]], 1),  # a start needs no alignment
    (lambda: slice_of("p", "y", [1, 0], [0, 64]), (4, 64), lambda y: [y[1:1]], 0),  # no elements
    (lambda: strided("p", "y", [1], [3], [1]), (4, 64), lambda y: [y[1:3]], 1),
    (lambda: strided("p", "y", [-1], [0], [1], shrink_axis_mask=1), (4, 64), lambda y: [y[-1]], 1),
    (lambda: strided("p", "y", [0, 2, 0], [0, 3, 0], [1, 1, 1], new_axis_mask=1, begin_mask=4, end_mask=4), (4, 64),
     lambda y: [y[None, 2:3]], 1),
    (lambda: strided("p", "y", [0], [4], [2]), (4, 64), lambda y: [y[::2]], 0),
    (lambda: strided("p", "y", [3], [2], [-1]), (4, 64), lambda y: [y[3:2:-1]], 1),  # one row has any stride
    (lambda: strided("p", "y", [3], [1], [-1]), (4, 64), lambda y: [y[3:1:-1]], 0),
]


@pytest.mark.parametrize(("make", "shape", "want", "count"), CASES)
@pytest.mark.parametrize("sim", [{}, {"copy_streams": True}, {"wraps": True}, {"debug": {"poison": True}},
                                 {"debug": {"synchronous": True}}], ids=str)
def test_parts_that_are_aligned_and_without_gaps_are_views(make, shape, want, count, sim):
    readers = [on_device(f"r{i}", "Square", f"p:{i}" if i else "p") for i in range(len(want(np.zeros(shape))))]
    nodes = [placeholder("x", shape), on_device("y", "Neg", "x"), *make(), *readers]
    fetches = [reader.name for reader in readers]
    with session(nodes, **sim) as of:
        for run in range(3):
            x = numbers(*shape) + run
            for got, part in zip(of.run(fetches, {"x": x}), want(-x), strict=True):
                np.testing.assert_array_equal(got, np.square(part))
        assert views(of, fetches, shape) == count
        assert report(of) == []


def test_a_device_without_parts_copies_them():
    nodes = [placeholder("x", (4, 64)), on_device("y", "Neg", "x"), *unpack("p", "y", 4), on_device("z", "Neg", "p:3")]
    with session(nodes, part_alignment=0) as of:
        np.testing.assert_array_equal(of.run("z", {"x": numbers(4, 64)}), numbers(4, 64)[3])
        assert views(of, ["z"], (4, 64)) == 0


@pytest.mark.parametrize("fetches", [["p", "p:1"], ["p:1", "y"], ["p", "r"], ["same", "r"]])
def test_a_part_that_leaves_the_device_is_copied(fetches):
    nodes = [placeholder("x", (2, 64)), on_device("y", "Neg", "x"), *unpack("p", "y", 2),
             on_device("r", "Square", "p:1"), on_device("same", "Identity", "p")]
    x = numbers(2, 64)
    want = {"p": -x[0], "p:1": -x[1], "y": -x, "r": x[1] ** 2, "same": -x[0]}
    with session(nodes) as of:
        for _ in range(2):
            for array, name in zip(of.run(fetches, {"x": x}), fetches, strict=True):
                np.testing.assert_array_equal(array, want[name])
                array[...] = 99
        assert views(of, fetches, (2, 64)) == 0


def test_memory_is_used_again_only_behind_the_last_use_of_a_part():
    """A chain of kernels would take the memory of the whole, which ends with its first consumer."""
    nodes = [placeholder("x", (2, 64)), on_device("y", "Neg", "x"), *unpack("p", "y", 2), on_device("a", "Exp", "p")]
    nodes += [on_device(f"a{i}", "Exp", f"a{i - 1}" if i else "a") for i in range(4)]
    nodes += [on_device("last", "AddV2", "a3", "p:1")]
    x = numbers(2, 64) + 9
    value = np.exp(-x[0])
    for _ in range(4):
        value = np.exp(value)
    with session(nodes, debug={"poison": True}) as of:
        for _ in range(3):
            np.testing.assert_allclose(of.run("last", {"x": x}), value - x[1], rtol=1e-5)
        assert report(of) == []


def test_a_part_is_never_written_in_place():
    nodes = [placeholder("x", (2, 64)), on_device("y", "Neg", "x"), *unpack("p", "y", 2),
             on_device("a", "Relu", "p"), on_device("b", "Relu", "a"), on_device("z", "AddV2", "y", "b")]
    x = numbers(2, 64)
    with session(nodes) as of:
        for _ in range(3):
            np.testing.assert_array_equal(of.run("z", {"x": x}), -x + np.maximum(-x[0], 0))
        assert views(of, ["z"], (2, 64)) == 1


def test_explain_tells_the_views():
    nodes = [placeholder("x", (2, 64)), on_device("y", "Neg", "x"), *unpack("p", "y", 2), on_device("z", "Neg", "p:1")]
    with session(nodes) as of:
        executable = of.prepare(["z"], ["x"]).executable(((2, 64),))
        assert executable.algorithms()["p"] == "shows parts of its input"


@st.composite
def programs(draw):
    nodes, values = [placeholder("x", SHAPE), on_device("y", "Neg", "x")], [("y", SHAPE)]
    for number in range(draw(st.integers(3, 12))):
        source, shape = draw(st.sampled_from(values))
        name = f"n{number}"
        kind = draw(st.sampled_from(["unpack", "split", "slice", "strided", "relu", "add", "host", "neg"]))
        if kind == "unpack" and len(shape) > 1:
            nodes += unpack(name, source, shape[0])
            values += [(f"{name}:{i}" if i else name, shape[1:]) for i in range(shape[0])]
        elif kind == "split" and shape[0] % 2 == 0:
            nodes += split(name, source, 2)
            values += [(name, (shape[0] // 2, *shape[1:])), (f"{name}:1", (shape[0] // 2, *shape[1:]))]
        elif kind in ("slice", "strided") and shape[0] > 1:
            begin = draw(st.integers(0, shape[0] - 1))
            size = (shape[0] - begin, *shape[1:])
            nodes += (slice_of(name, source, [begin, *(0,) * (len(shape) - 1)], size) if kind == "slice"
                      else strided(name, source, [begin], [shape[0]], [1]))
            values.append((name, size))
        elif kind == "add":
            other = draw(st.sampled_from([value for value, theirs in values if theirs == shape]))
            nodes.append(on_device(name, "AddV2", source, other))
            values.append((name, shape))
        else:
            op = {"relu": "Relu"}.get(kind, "Neg")
            nodes.append(on_device(name, op, source, device="CPU:0" if kind == "host" else DEVICE))
            values.append((name, shape))
    return nodes, draw(st.lists(st.sampled_from([value for value, _ in values]), min_size=1, max_size=3))


@given(programs(), st.sampled_from([{}, {"copy_streams": True}, {"wraps": True}, {"part_alignment": 64}]))
@settings(max_examples=60, deadline=None)
def test_random_programs_of_parts_give_what_copies_give(program, sim):
    nodes, fetches = program
    x = numbers(*SHAPE)
    with session(nodes, part_alignment=0) as of:
        expected = [of.run(fetches, {"x": x + run}) for run in (0, 1, 0)]
    with session(nodes, **sim) as of:
        for run, values in zip((0, 1, 0), expected, strict=True):
            for result, value in zip(of.run(fetches, {"x": x + run}), values, strict=True):
                np.testing.assert_array_equal(result, value)
        assert report(of) == []


def test_a_part_of_a_part_is_at_the_sum_of_both_starts():
    device = Sim(0, Machine(), Config())
    device.open()
    whole = device.allocate(2048)
    device.copy_in(np.arange(2048, dtype=np.uint8), whole, 0)
    part = device.part(device.part(whole, 512, 1024), 256, 100)
    host = np.zeros(100, np.uint8)
    device.copy_out(part, host, 0)
    device.free(whole)
    device.synchronize(device.record(0))
    np.testing.assert_array_equal(host, np.arange(2048, dtype=np.uint8)[768:868])
    assert isinstance(part, Part)
    assert part.state == "returned"
    device.copy_out(part, host, 0)
    with pytest.raises(HealdError, match="use after free"):
        device.synchronize(device.record(0))


@pytest.mark.parametrize("alignment", [0, 3, -256, True, 256.0, "256", 1 << 20])
def test_a_wrong_alignment_of_parts_makes_the_device_unavailable(monkeypatch, alignment):
    init = Sim.__init__

    def init_with_alignment(device, *arguments):
        init(device, *arguments)
        device.attributes["limits"] = {"part_alignment": alignment}

    monkeypatch.setattr(Sim, "__init__", init_with_alignment)
    with pytest.warns(HealdWarning, match="the limit 'part_alignment' is"):
        records = runtime({"plugin": {"sim": {"seed": repr(alignment).__hash__() % 1000}}}).host.records("SIM")
    assert [record.status for record in records] == ["unavailable"]


def test_an_alignment_without_the_method_makes_the_device_unavailable(monkeypatch):
    monkeypatch.delattr(Sim, "part")
    with pytest.warns(HealdWarning, match="no method 'part'"):
        records = runtime({"plugin": {"sim": {"seed": 77}}}).host.records("SIM")
    assert [record.status for record in records] == ["unavailable"]


class Broken(Exception):
    pass


@pytest.mark.parametrize("source", ["x", "y"])  # a part of a feed is made in each run, one of a value with the frame
def test_a_device_whose_part_raises_is_named(monkeypatch, source):
    def raise_broken(*_):
        raise Broken("no parts today")

    nodes = [placeholder("x", (2, 64)), on_device("y", "Neg", "x"), *unpack("p", source, 2),
             on_device("z", "Neg", "p:1")]
    with session(nodes, wraps=True) as of:
        monkeypatch.setattr(Sim, "part", raise_broken)
        with pytest.raises(PluginError, match="Broken: no parts today") as raised:
            of.run("z", {"x": numbers(2, 64)})
    assert raised.value.device == DEVICE
    assert (raised.value.node, raised.value.method) == ("p", "part")
