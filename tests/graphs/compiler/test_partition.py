"""Partitions joined at their Sends and Recvs are the graph again."""

from __future__ import annotations

from collections import Counter

import numpy as np
from builders.graphs import const
from heald.graphs.compiler.partition import HostTensors, partition
from heald.graphs.compiler.resolve import resolve
from heald.graphs.graph.graph import Graph, Input, Node, verify
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from hypothesis import given, settings
from hypothesis import strategies as st

DEVICES = [f"/job:localhost/replica:0/task:0/device:SIM:{index}" for index in range(3)]
KINDS = [np.float32, np.int32]
SENDS, RECVS = {"_Send", "_HostSend"}, {"_Recv", "_HostRecv"}


@st.composite
def placed_graphs(draw):
    """A graph over up to three devices with many data and control edges, and the tensors in host memory."""
    nodes, tensors = [], []
    names = st.sampled_from(["n", "x/_0", "x/_1", "n/ctrl", "long/scope/n"])
    for number in range(draw(st.integers(1, 12))):
        name = f"{draw(names)}{number}" if draw(st.booleans()) else f"n{number}"
        device = draw(st.sampled_from(DEVICES))
        controls = draw(st.lists(st.sampled_from([n.name for n in nodes]), max_size=3, unique=True)) if nodes else []
        inputs = draw(st.lists(st.sampled_from(tensors), max_size=4)) if tensors else []
        if inputs:
            types = [kind for _, kind in inputs]
            nodes.append(Node(name, "IdentityN", [tensor for tensor, _ in inputs], controls=controls, device=device,
                              attrs={"T": tuple(types)}))
        else:
            array = np.zeros(2, draw(st.sampled_from(KINDS)))
            types = [dtypes.of_numpy(array.dtype)]
            nodes.append(const(name, array, array.dtype, device=device, controls=controls))
        tensors += [(Input(name, None, index), kind) for index, kind in enumerate(types)]
    graph = Graph(nodes)
    inputs = [(node.name, index) for node in graph for index in range(len(node.inputs))]
    outputs = [(tensor.node, tensor.index) for tensor, _ in tensors]
    return graph, HostTensors(*(frozenset(draw(st.sets(st.sampled_from(side)))) if side else frozenset()
                                for side in (inputs, outputs)))


def parts_of(graph, memory):
    return partition(graph, resolve(graph, runtime().host.registries.ops), memory)


def join_partitions(parts):
    """The graph that partitions came from: each Recv replaced by its Send's input, the nodes of transfers left out."""
    union = {node.name: node for part in parts.values() for node in part}
    assert len(union) == sum(map(len, parts.values()))  # names are unique
    sends = {node.attrs["tensor_name"]: node for node in union.values() if node.op in SENDS}
    received = {node.name: sends[node.attrs["tensor_name"]].inputs[0] for node in union.values() if node.op in RECVS}
    empty = {node.inputs[0].node for node in sends.values() if "/ctrl/_" in node.inputs[0].node} & {
        node.name for node in union.values() if node.op == "Const" and node.attrs["value"].shape == (0,)}
    waits = {node.name: union[received[node.inputs[0].node].node].controls[0] for node in union.values()
             if node.op == "Identity"}
    added = {*received, *empty, *waits, *(node.name for node in sends.values())}
    return {name: (node.op, node.device, tuple(received.get(tensor.node, tensor) for tensor in node.inputs),
                   tuple(waits.get(control, control) for control in node.controls))
            for name, node in union.items() if name not in added}


@settings(max_examples=60, deadline=None)
@given(placed_graphs())
def test_stitched_partitions_are_the_graph(placed):
    graph, memory = placed
    parts = parts_of(graph, memory)
    assert join_partitions(parts) == {node.name: (node.op, node.device, node.inputs, node.controls) for node in graph}


@settings(max_examples=60, deadline=None)
@given(placed_graphs())
def test_each_send_has_one_recv_and_no_edge_leaves_a_partition(placed):
    graph, memory = placed
    parts = parts_of(graph, memory)
    sends, recvs = [], []
    for device, part in parts.items():
        verify(part)  # the inputs of each node are in its own partition
        assert {node.device for node in part} == {device}
        sends += [node for node in part if node.op in SENDS]
        recvs += [node for node in part if node.op in RECVS]
    shared = ("tensor_name", "send_device", "send_device_incarnation", "recv_device", "client_terminated", "_src",
              "_dst")
    assert Counter(tuple(node.attrs[key] for key in shared) for node in sends) == Counter(
        tuple(node.attrs[key] for key in shared) for node in recvs)
    assert len({node.attrs["tensor_name"] for node in sends}) == len(sends)
    assert all(node.attrs["send_device"].decode() == node.device for node in sends)
    assert all(node.attrs["recv_device"].decode() == node.device for node in recvs)


@settings(max_examples=60, deadline=None)
@given(placed_graphs())
def test_a_tensor_crosses_once_for_each_destination(placed):
    graph, memory = placed
    data = {(tensor, node.device, (node.name, index) in memory.inputs) for node in graph
            for index, tensor in enumerate(node.inputs) if graph[tensor.node].device != node.device}
    controls = {(name, node.device) for node in graph for name in node.controls
                if graph[name].device != node.device}
    nodes = [node for part in parts_of(graph, memory).values() for node in part]
    assert sum(node.op in SENDS for node in nodes) == len(data) + len(controls)
    assert len(nodes) == len(graph) + 2 * len(data) + 4 * len(controls)
    assert sum(node.op == "_HostRecv" for node in nodes) == sum(on_host for *_, on_host in data)
    from_host = sum((tensor.node, tensor.index) in memory.outputs for tensor, *_ in data)
    assert sum(node.op == "_HostSend" for node in nodes) == from_host


@settings(max_examples=50, deadline=None)
@given(placed_graphs())
def test_partitions_resolve_and_the_same_graph_has_the_same_names(placed):
    graph, memory = placed
    parts, again = parts_of(graph, memory), parts_of(graph, memory)
    assert {device: [*part.nodes] for device, part in parts.items()} == {
        device: [*part.nodes] for device, part in again.items()}
    for part in parts.values():
        errors = [entry for entry in resolve(part, runtime().host.registries.ops).values()
                  if isinstance(entry, Exception)]
        assert errors == []


def test_names_of_the_graph_are_not_taken_again():
    graph = Graph([const("x", [1], device=DEVICES[0]), const("x/_0", [1], device=DEVICES[1]),
                   Node("y", "Identity", ["x"], attrs={"T": dtypes.float32}, device=DEVICES[1])])
    parts = parts_of(graph, HostTensors())
    assert [*parts[DEVICES[0]].nodes] == ["x", "x/_1"]
    assert [*parts[DEVICES[1]].nodes] == ["x/_0", "x/_2", "y"]


def test_outputs_of_one_node_cross_on_their_own():
    pair = {"T": (dtypes.float32, dtypes.float32)}
    graph = Graph([const("x", [1], device=DEVICES[0]),
                   Node("p", "IdentityN", ["x", "x"], attrs=pair, device=DEVICES[0]),
                   Node("q", "IdentityN", ["p:1", "p"], attrs=pair, device=DEVICES[1])])
    parts = parts_of(graph, HostTensors())
    assert join_partitions(parts)["q"][2] == (Input("p", None, 1), Input("p"))
    assert [node.op for node in parts[DEVICES[0]]] == ["Const", "IdentityN", "_Send", "_Send"]
