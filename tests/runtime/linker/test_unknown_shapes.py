"""Values whose shape, or size, is only known while a step runs, beside devices outside host memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from harness.device_pairs import assigned_devices, faults, on_pairs, rows, session_of
from heald.errors import HealdWarning, InvalidArgument
from heald.runtime.values import dtypes
from plugins_for_tests import plugin

PLUGIN = {"load": [plugin("devices")]}
X = np.float32([1, -2, 3])
WHY = "shapes known only while it runs"


def chain(device):
    """Some of x, in the middle of a device's nodes."""
    return [placeholder("x", (None,)), node("before", "Neg", "x", device=device),
            node("some", "Test>Positive", "before"), node("twice", "AddV2", "some", "some", device=device),
            node("after", "Relu", "twice", device=device), node("beside", "Relu", "before", device=device)]


def session(device, nodes=None, fallback="allow"):
    return session_of(*(nodes or chain(device)), plugins=PLUGIN, placement={"fallback": fallback})


@on_pairs
def test_consumers_of_a_value_of_unknown_shape_go_to_the_host(first, second):
    open_session = session(second)
    for x in (X, -X, np.float32([-5, 0])):  # a link for each feed shape
        after, beside = open_session.run(["after", "beside"], {"x": x})
        assert after.tolist() == (-2 * x[x < 0]).tolist()
        assert beside.tolist() == np.maximum(-x, 0).tolist()
    assert assigned_devices(open_session) == {
        "before": second, "some": "CPU:0", "twice": "CPU:0", "after": "CPU:0", "beside": second}
    for name in ("twice", "after"):
        assert f": {WHY}" in rows(open_session)[name]["refused"]
        assert rows(open_session)[name]["reason"].endswith(f"the request could not be met: {WHY}")
    assert faults(open_session) == []


@on_pairs
def test_the_fallback_policy_decides_between_a_warning_and_a_refusal(first, second):
    open_session = session(second, fallback="warn")
    with pytest.warns(HealdWarning, match=rf"{WHY}; nodes (twice|after)$") as caught:
        open_session.run("after", {"x": X})
    assert len(caught) == 2  # one an op
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_session.run("after", {"x": X[:1]})  # told once
    open_session = session(second, fallback="error")
    with pytest.raises(InvalidArgument, match=f"asks for {second}, which cannot serve it: {WHY}") as caught:
        open_session.run("after", {"x": X})
    assert (caught.value.node, caught.value.device) == ("twice", second)
    assert open_session.run("beside", {"x": X}).tolist() == [0, 2, 0]


@on_pairs
def test_a_shape_that_is_fed_is_unknown_and_the_node_that_reads_it_goes_to_the_host(first, second):
    open_session = session(second, [
        placeholder("x", (6,)), placeholder("s", (2,), dtypes.int32), node("n", "Neg", "x", device=second),
        node("r", "Reshape", "n", "s", device=second, Tshape=dtypes.int32), node("m", "Neg", "r", device=second)])
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, 2], [6, 1]):
        assert open_session.run("m", {"x": x, "s": shape}).tolist() == x.reshape(shape).tolist()
    assert assigned_devices(open_session) == {"n": second, "r": "CPU:0", "m": "CPU:0"}


@on_pairs
def test_all_unknown_nodes_are_refused_in_one_round(first, second, monkeypatch):
    from heald.graphs.session import step_compiler as module

    rounds = []
    lower = module.lower
    monkeypatch.setattr(module, "lower", lambda *arguments, **named: rounds.append(1) or lower(*arguments, **named))
    nodes = [placeholder("x", (3,)), node("n0", "Test>Positive", "x")]
    for i in range(1, 40):
        nodes.append(node(f"n{i}", "Neg", f"n{i - 1}", device=(first, second)[i % 2]))
    open_session = session(second, nodes)
    assert open_session.run("n39", {"x": X}).tolist() == [-1, -3]
    assert len(rounds) == 2
    assert set(assigned_devices(open_session).values()) == {"CPU:0"}


@on_pairs
def test_an_op_without_a_metadata_function_is_the_hosts(first, second):
    open_session = session(second, [placeholder("x", (3,)), node("u", "Test>Untold", "x", device=second)])
    assert open_session.run("u", {"x": X}).tolist() == X.tolist()
    assert assigned_devices(open_session) == {"u": "CPU:0"}
    assert rows(open_session)["u"]["refused"].endswith("Test>Untold: no metadata function tells its shapes")


@on_pairs
def test_strings_stay_on_the_host(first, second):
    nodes = [placeholder("x", (2,), dtypes.string), node("i", "Identity", "x", device=second, T=dtypes.string),
             node("j", "Identity", "i", device=first, T=dtypes.string)]
    open_session = session(second, nodes)
    assert open_session.run("j", {"x": [b"a", b"bc"]}).tolist() == [b"a", b"bc"]
    assert assigned_devices(open_session) == {"i": "CPU:0", "j": "CPU:0"}
    with pytest.raises(InvalidArgument, match=f"asks for {second}"):
        session(second, nodes, fallback="error").run("i", {"x": [b"a", b"bc"]})


@on_pairs
def test_many_feed_shapes_do_not_take_a_graph_off_its_device(first, second):
    """The ninth would be served by a link for all shapes, which such a device cannot have."""
    open_session = session(second, [placeholder("x", (None,)), const("c", 2), node("n", "Neg", "x", device=second)])
    for count in range(1, 14):
        assert open_session.run("n", {"x": np.ones(count)}).tolist() == [-1] * count
    assert assigned_devices(open_session) == {"n": second}
