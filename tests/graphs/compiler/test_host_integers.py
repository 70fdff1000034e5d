"""Arithmetic with shapes beside devices outside host memory: nothing of it crosses, and the device keeps its work."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from harness.device_pairs import assigned_devices, copies, on_pairs, rows, run_traced, session_of
from heald.graphs.compiler.host_integers import nodes_kept_on_host
from heald.runtime.values import dtypes
from plugins_for_tests import plugin

pytestmark = pytest.mark.usefixtures("graphs_as_written")

INT = dtypes.int32
PLUGIN = {"load": [plugin("devices")]}
FIRST = {"Index": INT, "begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 1}
X = np.arange(24, dtype=np.float32).reshape(4, 2, 3)


def flattening_nodes(source, *between, device=""):
    """Reshape(source, [its length, -1]); `between` are ops that the length goes through."""
    nodes = [node("s", "Shape", source, out_type=INT, device=device), const("zero", [0], np.int32),
             const("one", [1], np.int32), const("rest", -1, np.int32),
             node("n", "StridedSlice", "s", "zero", "one", "one", T=INT, device=device, **FIRST)]
    for i, op in enumerate(between):
        nodes.append(node(f"b{i}", op, nodes[-1].name, *(["rest"] if op in ("Mul", "AddV2") else []), T=INT,
                          device=device))
    return [*nodes, node("p", "Pack", nodes[-1].name, "rest", T=INT, N=2, axis=0, device=device),
            node("r", "Reshape", source, "p", Tshape=INT, device=device), node("y", "Neg", "r", device=device)]


@pytest.mark.parametrize("between", [(), ("Mul", "Neg"), ("Neg", "Mul"), ("Neg", "Identity", "Neg")])
@pytest.mark.parametrize("asks", [True, False])
@on_pairs
def test_values_that_follow_from_shapes_are_not_computed_in_runs(first, second, asks, between):
    """The host's kernels also compute values that the device would compute otherwise."""
    nodes = [placeholder("x", (None, None, 3)), node("a", "Relu", "x", device=second),
             *flattening_nodes("a", *between, device=second if asks else "")]
    session = session_of(*nodes, device_of_session=second, placement={"fallback": "allow"})
    for x in (X, X[:2]):
        results, trace = run_traced(session, "y", {"x": x})
        assert results.tolist() == (-x.reshape(len(x), -1)).tolist()
        assert {e.call.op for e in trace.events} <= {"copy", "Relu", "Neg"}
        assert {e.call.node for e in trace.events} <= {"x", "a", "y"}
        assert len(copies(trace)) == 2
    assert {assigned_devices(session)[name] for name in ("a", "r", "y")} == {second}


@on_pairs
def test_an_integer_that_only_the_host_reads_is_computed_on_the_host(first, second):
    nodes = [placeholder("x", (None,)), node("a", "Relu", "x"), node("some", "Test>Positive", "a"),
             *flattening_nodes("some", "Mul", "Mul")]
    session = session_of(*nodes, device_of_session=second, plugins=PLUGIN, placement={"fallback": "allow"})
    results, trace = run_traced(session, "y", {"x": X.reshape(-1)})
    assert results.shape == (23, 1)
    assert [where for _, where in copies(trace)] == [second, second]  # x in, a out
    assert {assigned_devices(session)[name] for name in ("n", "b0", "b1", "p")} == {"CPU:0"}
    if "no kernel" not in rows(session)["p"]["refused"]:
        assert rows(session)["p"]["reason"] == "only the host reads it"


@pytest.mark.parametrize(("candidates", "reads", "host_nodes"), [
    ("a", {"a": ["x"], "z": ["a"]}, "a"),
    ("a", {"a": ["x"], "d": ["a!"]}, ""),  # read on a device
    ("a", {"a": ["x"], "z": ["a"], "d": ["a!"]}, ""),  # and there, too
    ("a", {"a": ["x"]}, ""),  # read by nobody: a result, of the session's device
    ("a", {"a": ["d!"], "z": ["a"]}, ""),  # made on a device
    ("abc", {"a": ["x!"], "b": ["a!", "x!"], "c": ["b!", "a!"], "z": ["c"]}, "abc"),  # whatever the order
    ("cba", {"z": ["c"], "c": ["b!", "a!"], "b": ["a!", "a!"], "a": ["x!"]}, "abc"),
    ("abc", {"a": ["x!"], "b": ["a!"], "d": ["a!"], "c": ["b!"], "z": ["c"]}, ""),  # all hangs on a, which d needs
    ("ab", {"a": ["b!"], "b": ["a!"], "z": ["a", "b"]}, ""),  # a loop
])
def test_whole_numbers_stay_on_the_host_where_that_spares_copies(candidates, reads, host_nodes):
    """x and z are on the host, d is on a device; `!` marks a read in the memory of the reader's device."""
    edges = {name: [(source.rstrip("!"), source.endswith("!")) for source in sources]
             for name, sources in ({"x": [], "z": [], "d": []} | reads).items()}
    assert nodes_kept_on_host(set(candidates), {"x", "z"}, edges) == set(host_nodes)


def test_a_long_chain_takes_no_stack():
    names = [f"n{i}" for i in range(50_000)]
    edges = {"x": [], "z": [(names[-1], False)]} | {
        name: [(before, True)] for before, name in zip(["x", *names], names, strict=False)}
    assert len(nodes_kept_on_host(set(names), {"x", "z"}, edges)) == len(names)
