"""Step graphs: the graph that a step runs, whole and in partitions, as data for people and transports."""

from __future__ import annotations

from ...runtime.contract.device import DeviceName
from ...runtime.contract.placement import Placement
from ...runtime.contract.structural import NO_KERNEL
from ...runtime.host.host import Host
from ...runtime.support.records import NamedTuple
from ..compiler.client_graph import CALL_FRAME, Endpoint, EndpointConvention, client_graph
from ..compiler.colocation import without_outside_colocation
from ..compiler.partition import HostTensors, partition
from ..compiler.prune import prune
from ..compiler.resolve import Resolved, resolve
from ..compiler.step_devices import refuse_split_loops, step_devices
from ..graph.graph import Graph
from .function_compiler import StepSignature
from .graph_placement import PlacedGraph


class GraphExport(NamedTuple):
    """The graphs of one step of a session, before the passes of the stage "graph"."""

    placed_graph: PlacedGraph
    signature: StepSignature
    placement: Placement
    host: Host

    def client_graph(self, convention: str) -> Graph:
        """Return the graph that the step runs, each node with its device. `convention` as in `Session.client_graph`.

        Raises InvalidArgument for an unknown convention, and the errors of the nodes that the step needs.
        """
        fed, fetched, targets = self.signature
        nodes = self.placed_graph.nodes
        client = self._client_device()
        rules = EndpointConvention(convention, _full_device_name(client))
        order = prune(nodes, fed, fetched, targets)
        feeds = [Endpoint(tensor, meta.dtype, index) for index, (tensor, meta) in enumerate(fed.items())]
        fetches = [Endpoint((name, port), _check_resolved(nodes[name]).output_tensors[port].dtype, index)
                   for index, (name, port) in enumerate(fetched)]
        graph = client_graph(self.placed_graph.graph, order, feeds, fetches, rules)
        needed_names = {entry.node.name for entry in order}
        placed = {node.name: self._device_of_node(node.name) if node.name in needed_names else client for node in graph}
        devices = step_devices(graph, {name: device for name, device in placed.items() if device},
                               self.placed_graph.device_of_request, client)
        placed_nodes = [node.replace(device=_full_device_name(devices[node.name])) for node in graph]
        return graph.replace(nodes=without_outside_colocation(placed_nodes))

    def partitions(self) -> dict[str, Graph]:
        """Return the graph of each device, by its full name.

        Raises Unimplemented for a loop on several devices, and the errors of the nodes that the step needs.
        """
        graph = self.client_graph(CALL_FRAME)
        refuse_split_loops(graph, self.placed_graph.device_of_request)
        nodes = {name: _check_resolved(entry) for name, entry in resolve(graph, self.host.registries.ops).items()}
        return partition(graph, nodes, self._host_tensors(graph, nodes))

    def _client_device(self) -> str:
        """Return the device of feeds and fetches: the first one that works on host memory."""
        records = (record for device_type in self.host.preference() for record in self.host.records(device_type))
        return next((record.name for record in records if record.attributes.get("host_visible")), "CPU:0")

    def _device_of_node(self, name: str) -> str:
        """Return the device of a node; "" where the runtime itself serves the node. Raises the node's error."""
        row = self.placement[name]
        if row.error is not None:
            raise row.error
        return row.device or ""

    def _host_tensors(self, graph: Graph, nodes: dict[str, Resolved]) -> HostTensors:
        """Return the tensors in host memory: all of nodes without kernels, and inputs that kernels read there."""
        visible = {node.device: self.host.is_host_visible(DeviceName.parse(node.device).short) for node in graph}
        inputs, outputs = set(), set()
        for name, entry in nodes.items():
            if visible[graph[name].device]:
                continue
            row = self.placement.get(name)
            args = None if entry.op.name in NO_KERNEL or row is None or row.kernel is None else row.kernel.host
            inputs |= {(name, index) for index, tensor in enumerate(entry.input_tensors)
                       if args is None or tensor.arg in args}
            if args is None:
                outputs |= {(name, index) for index in range(len(entry.output_tensors))}
        return HostTensors(inputs, outputs)


def _full_device_name(device: str) -> str:
    """Return the full name of a device of this process."""
    return str(DeviceName.parse(device)._replace(job="localhost", replica=0, task=0))


def _check_resolved(entry: Resolved | Exception) -> Resolved:
    if isinstance(entry, Resolved):
        return entry
    raise entry
