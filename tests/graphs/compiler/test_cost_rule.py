"""Placement by cost: free nodes between nodes of another device move there where that is cheaper, and say why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.device_pairs import assigned_devices, faults, rows
from heald.errors import HealdWarning, InvalidArgument
from heald.graphs.compiler.cost_rule import LARGEST_ISLAND_NODES
from heald.runtime.contract.device_cost import DeviceCost
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("graphs_as_written")

# Square is the CPU's alone
ON_SIM = ["AddV2", "ArgMax", "Identity", "MatMul", "Neg", "RandomUniform", "Relu", "Sum"]
BY_PRIORITY = "first in order with a kernel"
INT = dtypes.int32
PRODUCT = {"transpose_a": False, "transpose_b": False}


def make_session(*nodes: Any, device: str | None = None, sim: dict | None = None, **placement) -> heald.Session:
    config = {"placement": {"order": ["SIM", "CPU"], **placement}, "plugin": {"sim": {"ops": ON_SIM, **(sim or {})}}}
    return heald.Session(graph(*nodes), config, device=device)


def between(*chain: heald.graphs.graph.Node, shape: tuple[int | None, ...] = (4, 4)) -> list[heald.graphs.graph.Node]:
    """Two nodes of the CPU, `a` in front of a chain that starts with it, and `z` behind the chain's last node."""
    return [placeholder("x", shape), node("a", "Square", "x"), *chain, node("z", "Square", chain[-1].name)]


SMALL = [node("n", "Neg", "a"), node("r", "Relu", "n"), node("s", "AddV2", "r", "n")]
X = np.arange(16, dtype=np.float32).reshape(4, 4) - 8


def test_a_small_chain_between_two_nodes_of_the_cpu_goes_to_the_cpu_with_the_figures():
    session = make_session(*between(*SMALL))
    assert set(assigned_devices(session).values()) == {"CPU:0"}
    reason = {rows(session)[name]["reason"] for name in "nrs"}
    # launches: 1 us and 4 + 2 us; 64 bytes a tensor: 20 ns for the CPU's three kernels; 2 transfers of 8 us
    assert reason == {"cost: 3 nodes at 3.04 us on CPU:0 instead of 18 us on SIM:0 and 16 us of transfers"}
    n = -X * X
    assert session.run("z", {"x": X}).tolist() == np.square(np.maximum(n, 0) + n).tolist()
    assert faults(session) == []


def test_a_large_product_between_two_nodes_of_the_cpu_stays_and_says_why():
    session = make_session(*between(node("m", "MatMul", "a", "a", **PRODUCT), shape=(1024, 1024)))
    assert assigned_devices(session) == {"a": "CPU:0", "m": "SIM:0", "z": "CPU:0"}
    reason = rows(session)["m"]["reason"]
    assert reason.startswith("first in order with a kernel; cost: 1 node at 221 us on SIM:0 and 435 us of transfers "
                             "instead of ")
    assert reason.endswith("ms on CPU:0")


@pytest.mark.parametrize("asks", ["SIM:0", "SIM"])
def test_a_requested_device_is_kept_whatever_it_costs(asks):
    session = make_session(*between(node("n", "Neg", "a", device=asks)))
    assert (assigned_devices(session)["n"], rows(session)["n"]["reason"]) == ("SIM:0", "requested")


def test_the_sessions_device_is_kept_whatever_it_costs():
    session = make_session(*between(*SMALL), device="SIM:0", fallback="allow")
    assert {assigned_devices(session)[name] for name in "nrs"} == {"SIM:0"}


def test_colocated_nodes_are_not_parted():
    session = make_session(*between(node("n", "Neg", "a"), node("r", "Relu", "n", _class=[b"loc:@n"])))
    assert (assigned_devices(session)["n"], assigned_devices(session)["r"]) == ("SIM:0", "SIM:0")


def test_a_device_without_figures_is_placed_by_priority():
    """The example device has none."""
    session = heald.Session(graph(placeholder("x", (3,)), node("a", "Rsqrt", "x"), node("n", "Neg", "a"),
                                  node("z", "Rsqrt", "n")), {"placement": {"order": ["EXAMPLE", "CPU"]}})
    assert assigned_devices(session) == {"a": "CPU:0", "n": "EXAMPLE:0", "z": "CPU:0"}
    assert rows(session)["n"]["reason"] == BY_PRIORITY


def test_feeds_and_results_alone_move_nothing():
    session = make_session(placeholder("x", (3,)), node("n", "Neg", "x"))
    assert assigned_devices(session) == {"n": "SIM:0"}


def test_an_island_that_also_has_values_of_its_own_device_stays():
    session = make_session(*between(*SMALL), node("p", "Relu", "s", device="SIM:0"))
    assert {assigned_devices(session)[name] for name in "nrs"} == {"SIM:0"}


def test_nodes_between_requested_nodes_of_an_accelerator_join_them():
    nodes = [placeholder("x", (512, 512)), node("a", "Neg", "x", device="SIM:0"), node("n", "Neg", "a"),
             node("r", "Relu", "n"), node("z", "Neg", "r", device="SIM:0")]
    session = make_session(*nodes, order=["CPU", "SIM"])
    assert set(assigned_devices(session).values()) == {"SIM:0"}
    assert "of transfers" in rows(session)["n"]["reason"].partition("instead of")[2]
    x = np.full((512, 512), 2, np.float32)
    assert np.array_equal(session.run("z", {"x": x}), np.zeros_like(x) - 2)


def index_of_the_greatest(of: str) -> list[heald.graphs.graph.Node]:
    return [const("axis", 0, np.int32), node("i", "ArgMax", of, "axis", Tidx=INT, output_type=INT)]


def test_an_index_goes_to_the_device_that_makes_its_values():
    nodes = [placeholder("x", (64, 64)), node("a", "Square", "x"), *index_of_the_greatest("a"),
             node("n", "Neg", "i", T=INT), node("p", "Neg", "n", T=INT, device="SIM:0")]
    session = make_session(*nodes)
    assert assigned_devices(session) == {"a": "CPU:0", "i": "CPU:0", "n": "SIM:0", "p": "SIM:0"}
    assert rows(session)["i"]["reason"].startswith("cost: 1 node at ")
    assert session.run("p", {"x": np.eye(64) * np.arange(64)}).tolist() == [*range(64)]


def test_an_identity_goes_to_the_device_that_makes_its_input():
    session = make_session(*between(node("i", "Identity", "a")), node("n", "Neg", "i"),
                           node("p", "Neg", "n", device="SIM:0"))
    assert (assigned_devices(session)["i"], assigned_devices(session)["n"]) == ("CPU:0", "SIM:0")


def test_a_generator_goes_to_its_only_consumer():
    nodes = [const("shape", [2, 2], np.int32),
             node("g", "RandomUniform", "shape", T=dtypes.int32, dtype=dtypes.float32, seed=1, seed2=1),
             node("z", "Square", "g")]
    session = make_session(*nodes)
    assert assigned_devices(session) == {"g": "CPU:0", "z": "CPU:0"}
    assert "cost: 1 node" in rows(session)["g"]["reason"]


def test_lengths_that_are_unknown_count_as_a_batch_of_some():
    """With 32 rows of 1000 the transfers are 28 us."""
    session = make_session(*between(node("n", "Neg", "a"), shape=(None, 1000)))
    reason = "cost: 1 node at 26.6 us on CPU:0 instead of 6.26 us on SIM:0 and 28.8 us of transfers"
    assert rows(session)["n"]["reason"] == reason


def test_nodes_of_unknown_rank_stay_and_say_so():
    session = make_session(*between(node("n", "Neg", "a"), shape=None))
    assert assigned_devices(session)["n"] == "SIM:0"
    assert rows(session)["n"]["reason"].endswith("; no cost, since the rank of 'a:0' is unknown")


def test_a_kernel_that_the_other_device_lacks_keeps_its_island():
    nodes = [placeholder("x", (3,)), node("a", "Neg", "x", device="SIM:0"), node("q", "Square", "a"),
             node("n", "Neg", "q"), node("z", "Neg", "n", device="SIM:0")]
    session = make_session(*nodes, order=["CPU", "SIM"])
    assert (assigned_devices(session)["q"], assigned_devices(session)["n"]) == ("CPU:0", "CPU:0")


def test_constants_connect_no_islands_and_cost_nothing():
    shared = const("c", np.ones((4, 4)))
    session = make_session(shared, *between(node("n", "AddV2", "a", "c")), node("m", "AddV2", "c", "c"),
                           node("p", "AddV2", "m", "y"), placeholder("y", (4, 4)), node("q", "Neg", "c"),
                           node("r", "Square", "q"))
    assert (assigned_devices(session)["n"], assigned_devices(session)["p"]) == ("CPU:0", "SIM:0")
    assert (assigned_devices(session)["q"], rows(session)["q"]["reason"]) == ("SIM:0", BY_PRIORITY)


def test_islands_that_share_a_value_count_its_transfer_once():
    """The first island leaves the transfer of `a` to the second."""
    session = make_session(placeholder("x", (4, 4)), node("a", "Square", "x"), node("n", "Neg", "a"),
                           node("z", "Square", "n"),
                           node("m", "Neg", "a"), node("y", "Square", "m"))
    reason = {name: rows(session)[name]["reason"].partition("instead of ")[2] for name in "nm"}
    assert reason == {"n": "6 us on SIM:0 and 8 us of transfers", "m": "6 us on SIM:0 and 16 us of transfers"}


def test_nodes_between_nodes_of_their_own_device_have_no_price():
    session = make_session(*between(node("n", "Neg", "x"), node("r", "Relu", "n", device="SIM:0")),
                           node("p", "Neg", "q", device="SIM:0"), node("q", "Relu", "r"))
    assert (assigned_devices(session)["q"], rows(session)["q"]["reason"]) == ("SIM:0", BY_PRIORITY)


def test_a_node_that_makes_a_result_is_not_between_the_nodes_of_an_accelerator():
    session = make_session(placeholder("x", (1024, 1024)), node("a", "Neg", "x", device="SIM:0"), node("n", "Neg", "a"),
                           order=["CPU", "SIM"])
    assert (assigned_devices(session)["n"], rows(session)["n"]["reason"]) == ("CPU:0", BY_PRIORITY)


def test_a_moved_index_takes_the_nodes_behind_it_along():
    session = make_session(placeholder("x", (64, 64)), node("a", "Square", "x"), *index_of_the_greatest("a"),
                           node("n", "Neg", "i", T=INT), node("m", "Neg", "n", T=INT))
    assert set(assigned_devices(session).values()) == {"CPU:0"}
    assert rows(session)["n"]["reason"].startswith("cost: 2 nodes at ")


def test_integers_that_are_on_the_host_anyway_move_no_other_node_there():
    session = make_session(placeholder("x", (4, 4)), placeholder("i", (1,), dtypes.int32),
                           node("axes", "Neg", "i", T=dtypes.int32),
                           node("s", "Sum", "x", "axes", Tidx=dtypes.int32, keep_dims=False))
    assert rows(session)["axes"]["reason"] == "only the host reads it"
    assert (assigned_devices(session)["s"], rows(session)["s"]["reason"]) == ("SIM:0", BY_PRIORITY)


def test_a_chain_of_many_nodes_is_one_island_up_to_a_limit():
    def chain(length: int) -> list[heald.graphs.graph.Node]:
        return between(*(node(f"n{i}", "Neg", f"n{i - 1}" if i else "a") for i in range(length)))

    session = make_session(*chain(LARGEST_ISLAND_NODES))
    assert set(assigned_devices(session).values()) == {"CPU:0"}
    assert rows(session)["n0"]["reason"].startswith(f"cost: {LARGEST_ISLAND_NODES} nodes at ")
    assert rows(make_session(*chain(3000)))["n0"]["reason"] == BY_PRIORITY


def seconds(nodes: Sequence[heald.graphs.graph.Node], devices: dict[str, str], length: int) -> float:
    """The cost of a placement by the rules of the page: kernels, and one transfer for each value and memory."""
    cpu, sim = map(heald.default_host().cost, ("CPU:0", "SIM:0"))
    total, crossed = 0.0, set()
    read = {source.node for graph_node in nodes for source in graph_node.inputs}
    for graph_node in nodes:
        if graph_node.op == "Placeholder":
            continue
        figures = sim if devices[graph_node.name] == "SIM:0" else cpu
        total += figures.work(length, 4 * length * (len(graph_node.inputs) + 1))
        for source in graph_node.inputs:
            if (devices.get(source.node) == "SIM:0") != (devices[graph_node.name] == "SIM:0"):
                crossed.add((source.node, devices[graph_node.name]))
        if graph_node.name not in read and devices[graph_node.name] == "SIM:0":
            crossed.add((graph_node.name, "CPU:0"))
    return total + len(crossed) * sim.transfer(4 * length)


OPS = ("Neg", "Relu", "Square", "AddV2")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 5), st.integers(0, 5), st.booleans()), min_size=1,
                max_size=14), st.sampled_from([1, 5_000, 100_000]))
def test_no_graph_costs_more_than_by_priority_and_results_are_the_same(drawn, length):
    nodes = [placeholder("n0", (length,))]
    for number, (op, one, other, asks) in enumerate(drawn, 1):
        inputs = [f"n{max(0, number - 1 - back)}" for back in (one, other)][:2 if op == "AddV2" else 1]
        nodes.append(node(f"n{number}", op, *inputs, device="SIM:0" if asks and op != "Square" else ""))
    session = make_session(*nodes)
    devices = assigned_devices(session)
    by_priority = {graph_node.name: "CPU:0" if graph_node.op == "Square" else "SIM:0" for graph_node in nodes[1:]}
    assert seconds(nodes, devices, length) <= seconds(nodes, by_priority, length) * (1 + 1e-9)
    assert all(devices[graph_node.name] == "SIM:0" for graph_node in nodes[1:] if graph_node.device)
    assert assigned_devices(make_session(*nodes)) == devices
    x = np.resize(np.float32([-1, 0, 1, 1]), length)
    names = [graph_node.name for graph_node in nodes[1:]]
    alone = heald.Session(graph(*nodes), {"placement": {"clear": True}})
    for one, other in zip(session.run(names, {"n0": x}), alone.run(names, {"n0": x}), strict=True):
        assert np.array_equal(one, other)
    assert faults(session) == []


@pytest.mark.parametrize(("figures", "why"), [
    ([1], "is a list, not a dict"), ({"speed": 1}, "unknown figure 'speed'"), ({"flops": 0}, "'flops' .* is 0, not a"),
    ({"launch": -1e-6}, "'launch' .* from 0 to"), ({"flops": float("nan")}, "is nan"), ({"flops": "1"}, "is '1'"),
    ({"bandwidth": True}, "is True"), ({"flops": 10**400}, "from 1 to"), ({1: 2}, "unknown figure 1"),
])
def test_figures_that_are_no_figures_are_refused(figures, why):
    with pytest.raises(InvalidArgument, match=why) as caught:
        DeviceCost.of(figures)
    assert "its figures are launch, flops, memory_bandwidth, latency, bandwidth" in str(caught.value)


def test_a_device_with_wrong_figures_is_unavailable_with_the_reason(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text("""
from heald.api import hookimpl
from heald_example_device import device
HEALD_API = (1, 0)

def scan(config):
    found = device.Example(0, 1 << 20)
    found.attributes["cost"] = {"flops": -1}
    found.type = "ODD"
    yield found

@hookimpl
def heald_devices(registry):
    registry.device(type="ODD", scan=scan, kernels="heald_example_device.kernels:register_kernels")
""")
    nodes = graph(placeholder("x", (3,)), node("n", "Neg", "x", device="ODD:0"))
    with pytest.warns(HealdWarning, match=r"device ODD:0 \(plugin odd\): the figure 'flops'"):
        session = heald.Session(nodes, {"plugins": {"load": [str(path)]}, "placement": {"fallback": "allow"}})
    assert "ODD:0: unavailable: the figure 'flops' of the attribute 'cost' is -1" in rows(session)["n"]["refused"]
