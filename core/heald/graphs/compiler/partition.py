"""Partitioning: cuts a graph into one graph for each device, joined by Send and Recv.

    edge                     becomes
    within a device          itself
    data, across devices     _Send -> _Recv, once for each tensor and destination
    control, across devices  a constant without elements after the source -> _Send -> _Recv -> Identity, once for each
                             source and destination; the consumer waits for the Identity

A destination is a device and its memory: where a kernel reads host memory, the tensor comes by _HostRecv. _HostSend
sends from host memory. Names and attributes follow TensorFlow's (core/graph/graph_partition.cc): `x/_0`, `edge_5_x`.
The same graph has the same names in every process.
"""

# The theory of the partitioner
#
# The partitions, joined at their Sends and Recvs, are the graph again: each cut edge becomes the path Send -> Recv,
# which orders its ends as the edge did. So no new cycle arises, and partitions that run at the same time cannot wait
# for each other in a circle.
#
# - A tensor crosses once for each destination, however many consumers it has there: `_received` is keyed by it. A
#   control edge crosses once for each pair of source and destination device (`_awaited`).
# - A control edge needs a tensor to send, so it sends an empty constant that waits for the source.
# - A rendezvous key has no iteration of a loop. So a loop is never cut: `step_devices` gives it one device, and
#   `refuse_split_loops` raises where that is not possible.
# - Numbers in names count nodes and edges in the graph's order. Two processes that cut the same graph get the same
#   names.

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from ...runtime.contract.structural import HOST_RECV, HOST_SEND, IDENTITY, RECV, SEND
from ...runtime.support.records import NamedTuple
from ...runtime.values import dtypes
from ...runtime.values.dtypes import DType
from ..graph.graph import Graph, Input, Node
from ..graph.rewriting import constant
from .client_graph import called_functions, transfer_attributes
from .colocation import without_outside_colocation
from .prune import Tensor
from .resolve import Resolved


class HostTensors(NamedTuple):
    """The inputs and outputs, (node, index), that are in host memory though their device has its own."""

    inputs: AbstractSet[Tensor] = frozenset()
    outputs: AbstractSet[Tensor] = frozenset()


def partition(graph: Graph, nodes: Mapping[str, Resolved], memory: HostTensors) -> dict[str, Graph]:
    """Return a graph for each device, by its full name. The nodes of `graph` have full names as devices.

    `nodes`: the resolved nodes of `graph`, which give the types of tensors.
    """
    return Partitioner(graph, nodes, memory).partitions()


class Partitioner:
    """Makes the partitions of one graph."""

    def __init__(self, graph: Graph, nodes: Mapping[str, Resolved], memory: HostTensors) -> None:
        self._graph, self._nodes, self._memory = graph, nodes, memory
        self._parts: dict[str, list[Node]] = {node.device: [] for node in graph}
        self._received: dict[tuple[str, int, str, bool], str] = {}  # node, index, device, host memory -> _Recv
        self._awaited: dict[tuple[str, str], str] = {}  # node, device -> Identity
        self._number = 0  # of the next new node
        self._edge = 0  # of the edge in question, among all edges of the graph

    def partitions(self) -> dict[str, Graph]:
        for node in self._graph:
            inputs, controls = [], []
            for index, tensor in enumerate(node.inputs):
                inputs.append(self._local_input(node, index, tensor))
                self._edge += 1
            for name in node.controls:
                controls.append(self._local_control(node, name))
                self._edge += 1
            if (*inputs,) != node.inputs or (*controls,) != node.controls:
                self._parts[node.device].append(node.replace(inputs=inputs, controls=dict.fromkeys(controls)))
            else:
                self._parts[node.device].append(node)
        return {device: self._graph_of(self._parts[device]) for device in sorted(self._parts)}

    def _graph_of(self, nodes: list[Node]) -> Graph:
        unused = self._graph.functions.keys() - called_functions(self._graph, nodes)
        graph = self._graph.with_nodes(without_outside_colocation(nodes))
        return graph.replace(without_functions=unused) if unused else graph

    def _local_input(self, node: Node, index: int, tensor: Input) -> Input:
        """Return the tensor that stands for an input on the node's device."""
        source = self._graph[tensor.node]
        if source.device == node.device:
            return tensor
        on_host = (node.name, index) in self._memory.inputs
        key = tensor.node, tensor.index, node.device, on_host
        if key not in self._received:
            from_host = (tensor.node, tensor.index) in self._memory.outputs
            dtype = self._nodes[tensor.node].output_tensors[tensor.index].dtype
            ops = HOST_SEND if from_host else SEND, HOST_RECV if on_host else RECV
            self._received[key] = self._add_transfer(source, node, tensor, dtype, ops)
        return Input(self._received[key])

    def _local_control(self, node: Node, name: str) -> str:
        """Return the node that stands for a control input on the node's device."""
        source = self._graph[name]
        if source.device == node.device:
            return name
        key = name, node.device
        if key not in self._awaited:
            import numpy as np

            empty = constant(self._unused_name(f"{name}/ctrl"), np.zeros(0, np.float32), source.device)
            self._parts[source.device].append(empty.replace(controls=[name]))
            received = self._add_transfer(source, node, Input(empty.name), dtypes.float32, (SEND, RECV))
            self._awaited[key] = self._unused_name(name)
            self._parts[node.device].append(Node(self._awaited[key], IDENTITY, [received], device=node.device,
                                                 attrs={"T": dtypes.float32}))
        return self._awaited[key]

    def _add_transfer(self, source: Node, node: Node, tensor: Input, dtype: DType, ops: tuple[str, str]) -> str:
        """Add a Send of the tensor and its Recv for the node, and return the name of the Recv."""
        attrs: dict[str, Any] = {
            **transfer_attributes(f"edge_{self._edge}_{source.name}", source.device, node.device,
                                  client_terminated=False),
            "_src": source.name, "_dst": node.name}
        send, received = self._unused_name(source.name), self._unused_name(source.name)
        self._parts[source.device].append(Node(send, ops[0], [tensor], device=source.device,
                                               attrs={"T": dtype, **attrs}))
        self._parts[node.device].append(Node(received, ops[1], device=node.device,
                                             attrs={"tensor_type": dtype, **attrs}))
        return received

    def _unused_name(self, prefix: str) -> str:
        """Return the name of a new node, which no node of the graph has."""
        while True:
            name = f"{prefix}/_{self._number}"
            self._number += 1
            if name not in self._graph:
                return name
