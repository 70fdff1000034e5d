"""One program over several devices: fetches, feeds, targets, and the number of copies between devices."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from harness.device_pairs import assigned_devices, copies, faults, on_pairs, rows, run_traced, session_of
from harness.threads import in_threads
from heald.errors import InvalidArgument, PluginError, Unimplemented
from heald.runtime.values import dtypes
from plugins_for_tests import plugin

pytestmark = pytest.mark.usefixtures("graphs_as_written")

PLUGIN = {"load": [plugin("devices")]}
X = np.float32([1, -2, 3])


@on_pairs
def test_a_target_runs_and_gives_nothing(first, second):
    session = session_of(placeholder("A", (2, 2)), const("x", [[1], [1]]),
                         node("y", "MatMul", "A", "x", device=first, transpose_a=False, transpose_b=False),
                         node("neg", "Neg", "y", device=second))
    results, trace = run_traced(session, ["y:0"], {"A": [[3, 2], [-1, 0]]}, targets=["neg"])
    assert [r.tolist() for r in results] == [[[5], [-1]]]
    assert [e.device for e in trace.events if e.call.node == "neg" and e.call.code != "heald.copy"] == [second]


@on_pairs
def test_a_constant_on_one_device_may_be_fed_for_another_and_is_itself_again_later(first, second):
    session = session_of(const("A", [[1, 2], [3, 4]]), const("x", [[1], [1]]), node("n", "Neg", "x", device=second),
                         node("y", "Sub", "x", "n", device=first), node("z", "Neg", "y", device=second))
    assert session.run("z").tolist() == [[-2], [-2]]
    assert session.run("z", {"x": [[5], [6]]}).tolist() == [[-10], [-12]]
    assert session.run("z").tolist() == [[-2], [-2]]


@on_pairs
def test_a_value_that_two_on_another_device_need_crosses_once(first, second):
    session = session_of(placeholder("x", (2,)), node("a", "Neg", "x", device=first),
                         node("b", "Neg", "a", device=second),
                         node("c", "Relu", "a", device=second), node("d", "AddV2", "b", "c", device=second))
    result, trace = run_traced(session, "d", {"x": np.float32([1, -2])})
    assert result.tolist() == [1, 0]
    there = [device for _, device in copies(trace)]
    across = 0 if first.startswith("CPU") else 2  # x in, a out
    assert (there.count(first), there.count(second)) == (across, 2)  # a in, d out


@on_pairs
def test_results_come_in_the_order_in_which_they_are_fetched_and_are_ones_own(first, second):
    session = session_of(const("one", [1]), const("two", [2]), node("id1", "Identity", "one", device=first),
                         node("id2", "Identity", "two", device=second))
    first = session.run(["id2", "id1", "id1"])
    assert [r.tolist() for r in first] == [[2], [1], [1]]
    first[1][:] = 9
    assert [r.tolist() for r in session.run(["id1", "id2"])] == [[1], [2]]
    assert first[2].tolist() == [1]


@on_pairs
def test_a_tensor_is_fed_once(first, second):
    session = session_of(const("c", [1]), node("n", "Neg", "c", device=first), node("m", "Neg", "n", device=second))
    with pytest.raises(InvalidArgument, match="fed more than once"):
        session.run("m", {"c": [1], "c:0": [2]})
    assert session.run("m").tolist() == [1]


@on_pairs
def test_a_graph_saved_for_gpus_runs_where_config_maps_them_to(first, second):
    nodes = (placeholder("x", (2,)), node("n", "Neg", "x", device="/device:GPU:1"),
             node("m", "Neg", "n", device="/job:localhost/replica:0/task:0/device:GPU:0"))
    session = session_of(*nodes, placement={"remap": {"GPU:0": first, "GPU:*": second}, "fallback": "error"})
    assert session.run("m", {"x": [1, 2]}).tolist() == [1, 2]
    assert assigned_devices(session) == {"n": second, "m": first}
    assert rows(session)["n"]["requested"] == "/device:GPU:1"


@on_pairs
def test_threads_share_a_session_over_two_devices(first, second):
    session = session_of(placeholder("x", (2,)), node("a", "Neg", "x", device=first), node("b", "Square", "a"),
                         node("c", "Neg", "b", device=second))
    step = session.make_callable("c", ["x"])

    def work(thread):
        for i in range(100):
            x = np.float32([thread, i])
            assert step(x).tolist() == (-x * x).tolist()

    in_threads(work)
    assert faults(session) == []


@on_pairs
def test_a_node_goes_to_the_first_in_order_that_has_a_kernel_for_it(first, second):
    session = session_of(placeholder("x", (3,)), node("both", "Neg", "x"), node("cpu", "Test>Positive", "both"),
                         node("device", "Test>Elsewhere", "both"), plugins=PLUGIN,
                         placement={"order": [second.partition(":")[0], "CPU"]})
    kind = f"{second.partition(':')[0]}:0"
    assert assigned_devices(session) == {"both": kind, "cpu": "CPU:0", "device": kind}
    assert rows(session)["cpu"] | {"node": ""} == {
        "node": "", "fused": "", "op": "Test>Positive", "requested": "", "assigned": "CPU:0",
        "kernel": "plugin_of_devices.Test>Positive", "reason": "first in order with a kernel",
        "choice": "the only kernel", "lost": "", "refused": f"{kind[:-2]}: no kernel for Test>Positive"}
    assert [r.tolist() for r in session.run(["cpu", "device"], {"x": X})] == [[2], [-1, 2, -3]]


@on_pairs
def test_a_device_that_is_not_there_is_replaced_by_another_of_its_type_or_is_an_error(first, second):
    kind = second.partition(":")[0]
    nodes = (placeholder("x", (3,)), node("a", "Neg", "x", device=first),
             node("b", "Neg", "a", device=f"/device:{kind}:11"), node("c", "Relu", "a", device=first))
    session = session_of(*nodes, placement={"fallback": "allow"})
    assert assigned_devices(session) == {"a": first, "b": f"{kind}:0", "c": first}
    assert session.run("b", {"x": X}).tolist() == X.tolist()
    session = session_of(*nodes, placement={"fallback": "error"})
    with pytest.raises(InvalidArgument, match=f"asks for {kind}:11, .*: no such device; devices: .*{kind}:0") as caught:
        session.run("b", {"x": X})
    assert (caught.value.node, caught.value.device) == ("b", f"{kind}:11")
    assert session.run("c", {"x": X}).tolist() == [0, 2, 0]


@on_pairs
def test_a_node_for_a_missing_device_harms_no_step_that_does_not_need_it(first, second):
    session = session_of(placeholder("x", (3,)), node("a", "Neg", "x", device=first),
                         node("b", "Neg", "a", device=second),
                         node("g", "Neg", "a", device="/device:TPU:0"), placement={"fallback": "error"})
    assert session.run("b", {"x": X}).tolist() == X.tolist()
    with pytest.raises(InvalidArgument, match="asks for TPU:0, which .*no plugin brings the device type TPU"):
        session.run(["b", "g"], {"x": X})


@on_pairs
def test_a_type_that_no_kernel_takes_is_told_with_those_that_there_are_before_anything_runs(first, second):
    session = session_of(placeholder("x", (3,)), node("a", "Neg", "x", device=first),
                         const("i", [1], np.int32), node("d", "RealDiv", "i", "i", device=second, T=dtypes.int32),
                         placement={"fallback": "allow"})
    metadata = heald.RunMetadata()
    with pytest.raises(Unimplemented, match=r"RealDiv with types int32.*; registered: .*CPU cpu.RealDiv T: .*float32"
                       r".*'heald plugins'") as caught:
        session.run(["a", "d"], {"x": X}, options=heald.RunOptions(trace=True), metadata=metadata)
    assert (caught.value.node, caught.value.op, metadata.trace) == ("d", "RealDiv", None)
    assert session.run("a", {"x": X}).tolist() == (-X).tolist()


@pytest.mark.parametrize("op", ["Test>Wrong", "Test>WrongLater"])
@on_pairs
def test_a_value_of_another_type_than_declared_does_not_cross(first, second, op):
    session = session_of(placeholder("x", (3,)), node("n", "Neg", "x", device=first), node("wrong", op, "n"),
                   node("a", "Neg", "wrong", device=second), node("b", "Relu", "n", device=second), plugins=PLUGIN)
    for _ in range(2):
        with pytest.raises(PluginError, match=r"returned float64\[3\], expected float32\[3\]") as caught:
            session.run(["a", "b"], {"x": X})
        assert (caught.value.node, caught.value.device) == ("wrong", "CPU:0")
        assert [r.tolist() for r in session.run(["a", "b"], {"x": -X})] == [(-X).tolist(), [1, 0, 3]]
    assert faults(session) == []


@on_pairs
def test_values_of_constants_are_computed_once_and_not_by_the_device(first, second):
    session = session_of(placeholder("x", (2,)), const("v", [2, -15]), const("e", 1),
                         node("s", "Mul", "v", "e", device=second), node("r", "Neg", "s", device=second),
                         node("y", "Mul", "x", "r", device=second))
    result, trace = run_traced(session, "y", {"x": np.float32([1, 1])})
    assert result.tolist() == [-2, 15]
    assert [e.call.node for e in trace.events if e.call.code != "heald.copy"] == ["y"]


def branch_on(first, second, **config):
    """A Switch whose false side goes to another device and back to the Merge."""
    return session_of(placeholder("x", (2,)), placeholder("p", (), dtypes.bool_), node("s", "Switch", "x", "p"),
                      node("there", "Neg", "s", device=second), node("back", "Mul", "there", "there", device=first),
                      node("yes", "Neg", "s:1", device=first), node("m", "Merge", "back", "yes", N=2), **config)


@on_pairs
def test_a_branch_over_two_devices_runs_if_it_is_taken(first, second):
    session = branch_on(first, second)
    for condition, result, devices in ((False, [1, 4], {first, second}), (True, [-1, 2], {first})) * 2:
        value, trace = run_traced(session, "m:0", {"x": np.float32([1, -2]), "p": condition})
        assert value.tolist() == result
        assert {e.device for e in trace.events if e.call.op in ("Neg", "Mul")} == devices
    assert faults(session) == []


def test_dead_values_cross_devices_and_cannot_be_fetched():
    session = branch_on("CPU:0", "CPU:1", plugin={"cpu": {"count": 2}})
    for condition, result, index in ((False, [1, 4], 0), (True, [-1, 2], 1)) * 2:
        feeds = {"x": np.float32([1, -2]), "p": condition}
        live, dead = ("yes", ["there", "back", "s:0"]) if condition else ("back", ["yes", "s:1"])
        # a fetch inside leaves Switch and Merge
        merged, live_index, live_value = session.run(["m:0", "m:1", live], feeds)
        assert (merged.tolist(), live_index, live_value.tolist()) == (result, index, result)
        for tensor in dead:
            with pytest.raises(InvalidArgument, match="is dead"):
                session.run(["m:0", tensor], feeds)
