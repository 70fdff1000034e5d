"""Tensor connections: within a callable's step, one tensor of the graph takes the place of another.

As in TensorFlow's CallableOptions, the consumers of the tensor that is replaced read the other one, and the node that
gives it does not run for them. Connections may follow each other: the last tensor of such a chain is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import HealdError, InvalidArgument
from ...runtime.contract.structural import PLACEHOLDERS
from ..compiler.names import tensor_of_name
from ..compiler.prune import Tensor
from ..compiler.resolve import Resolved
from ..graph.graph import Graph, Node, verify
from ..graph.node import Input

Connections = Mapping[Tensor, Tensor]  # tensor that is replaced -> tensor in its place


def resolve_connections(names: Mapping[str, str], nodes: Mapping[str, Resolved | HealdError]) -> Connections:
    """Return the tensors of connections by name, the last of each chain.

    Raises NotFound and InvalidArgument for unknown names, a tensor that is replaced twice, tensors of two types, and
    connections in a circle.
    """
    direct: dict[Tensor, Tensor] = {}
    for replaced_name, source_name in names.items():
        replaced, source = tensor_of_name(replaced_name, nodes, "feed"), tensor_of_name(source_name, nodes, "fetch")
        if replaced in direct:
            raise InvalidArgument(f"tensor '{replaced[0]}:{replaced[1]}' is connected more than once", node=replaced[0])
        one, other = (_dtype(tensor, nodes) for tensor in (replaced, source))
        if one != other:
            raise InvalidArgument(f"'{replaced_name}' is of type {one} and '{source_name}' of type {other}",
                                  node=replaced[0], hint="connect tensors of one type")
        direct[replaced] = source
    return {replaced: _last_of_chain(replaced, direct) for replaced in direct}


def connect(graph: Graph, connections: Connections) -> Graph:
    """Return the graph in which consumers read the tensors in place of those that are replaced.

    A control edge from a placeholder that is replaced becomes one from the other node. Raises InvalidArgument when a
    tensor depends on the one that it replaces.
    """
    sources = {replaced[0]: source[0] for replaced, source in connections.items()
               if graph[replaced[0]].op in PLACEHOLDERS}
    changed = [node for node in (_replace_edges(node, connections, sources) for node in graph) if node is not None]
    connected = graph.replace(nodes=changed)
    verify(connected)
    return connected


def _replace_edges(node: Node, connections: Connections, sources: Mapping[str, str]) -> Node | None:
    """Return the node with its inputs and controls after the connections; None when they stay."""
    inputs = [Input(*_as_input(connections[source.node, source.index]))
              if (source.node, source.index) in connections else source for source in node.inputs]
    controls = [*dict.fromkeys(sources.get(control, control) for control in node.controls)]
    if inputs == [*node.inputs] and controls == [*node.controls]:
        return None
    return node.replace(inputs=inputs, controls=controls)


def _as_input(tensor: Tensor) -> tuple[str, None, int]:
    return tensor[0], None, tensor[1]


def _dtype(tensor: Tensor, nodes: Mapping[str, Resolved | HealdError]) -> str:
    entry = nodes[tensor[0]]
    assert isinstance(entry, Resolved)
    return entry.output_tensors[tensor[1]].dtype.name


def _last_of_chain(replaced: Tensor, direct: Connections) -> Tensor:
    source, visited = direct[replaced], {replaced}
    while source in direct and source not in visited:
        visited.add(source)
        source = direct[source]
    if source in visited:
        raise InvalidArgument(f"the connections lead from '{replaced[0]}:{replaced[1]}' in a circle", node=replaced[0])
    return source
