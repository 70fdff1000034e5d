"""Client graphs: the graph that a step runs, with a node for each feed and for each fetch.

The rewriting follows TensorFlow's (core/graph/subgraph.cc), in both of its conventions:

    call_frame   feed x:0 at index 0 -> _Arg `_arg_x_0_0`      fetch f:0 at index 1 -> _Retval `_retval_f_0_1`
    rendezvous   feed x:0            -> _Recv `_recv_x_0`      fetch f:0            -> _Send `_send_f_0`

A feed replaces one tensor, not its node: the node stays where other outputs or control edges need it. A control edge
from a fed placeholder comes from the feed's node instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgument, closest
from ...runtime.contract.op import REQUIRED
from ...runtime.contract.structural import ARG, RECV, RETVAL, SEND
from ...runtime.support.records import NamedTuple
from ...runtime.values.attribute_values import Func, ShapeAttr
from ...runtime.values.dtypes import DType
from ..graph.graph import Graph, Input, Node
from ..graph.rewriting import new_name
from .prune import Tensor
from .resolve import Resolved

CALL_FRAME, RENDEZVOUS = "call_frame", "rendezvous"
INCARNATION = 1  # devices of one process never restart


class Endpoint(NamedTuple):
    """A tensor that a step is fed or returns, and its position among the feeds or fetches."""

    tensor: Tensor
    dtype: DType
    position: int


class EndpointConvention:
    """The nodes that take feeds and fetches, on the device `client`."""

    def __init__(self, name: str, client: str) -> None:
        """Raises InvalidArgument for an unknown convention."""
        if name not in (CALL_FRAME, RENDEZVOUS):
            suggestions = closest(str(name), (CALL_FRAME, RENDEZVOUS))
            raise InvalidArgument(f"convention={name!r}; expected '{CALL_FRAME}' or '{RENDEZVOUS}'",
                                  hint=f"did you mean '{suggestions[0]}'?" if suggestions
                                  else "leave it out for 'call_frame'")
        self._by_index = name == CALL_FRAME
        self._client = client

    def feed_node(self, end: Endpoint, used_names: set[str]) -> Node:
        if self._by_index:
            return self._node(ARG, f"_arg_{_tensor_label(end)}_{end.position}", used_names, _index_attributes(end))
        return self._node(RECV, f"_recv_{_tensor_label(end)}", used_names,
                          {"tensor_type": end.dtype, **self._transfer_attributes(end)})

    def fetch_node(self, end: Endpoint, source: Input, used_names: set[str]) -> Node:
        if self._by_index:
            return self._node(RETVAL, f"_retval_{_tensor_label(end)}_{end.position}", used_names,
                              _index_attributes(end), source)
        return self._node(SEND, f"_send_{_tensor_label(end)}", used_names,
                          {"T": end.dtype, **self._transfer_attributes(end)}, source)

    def fetches_with_nodes(self, fetches: Sequence[Endpoint]) -> list[Endpoint]:
        """Return the fetches that get a node: a rendezvous takes each tensor once."""
        return [*fetches] if self._by_index else [*{end.tensor: end for end in reversed(fetches)}.values()][::-1]

    def _node(self, op: str, name: str, used_names: set[str], attrs: Mapping[str, Any], *inputs: Input) -> Node:
        return Node(new_name(name, used_names), op, inputs, device=self._client, attrs=attrs)

    def _transfer_attributes(self, end: Endpoint) -> dict[str, Any]:
        node, index = end.tensor
        return transfer_attributes(f"{node}:{index}", self._client, self._client, client_terminated=True)


def transfer_attributes(name: str, source: str, destination: str, *, client_terminated: bool) -> dict[str, Any]:
    """Return the attributes that a Send and its Recv share. `source`, `destination`: full names of devices."""
    return {"tensor_name": name, "send_device": source, "send_device_incarnation": INCARNATION,
            "recv_device": destination, "client_terminated": client_terminated}


def client_graph(
    graph: Graph, order: Sequence[Resolved], feeds: Sequence[Endpoint], fetches: Sequence[Endpoint],
    convention: EndpointConvention,
) -> Graph:
    """Return the graph of a step: the nodes of `order`, their default attributes, and the nodes of feeds and fetches.

    `order`: the needed nodes, as `prune` returns them. Feeds that no node needs have no node. The graph has the
    functions that its nodes call.
    """
    used_names = {entry.node.name for entry in order}
    feed_nodes = {end.tensor: convention.feed_node(end, used_names) for end in feeds}
    step_nodes = {entry.node.name for entry in order}
    nodes = [_with_feeds(entry, feed_nodes, step_nodes) for entry in order]
    for end in convention.fetches_with_nodes(fetches):
        nodes.append(convention.fetch_node(end, _source(Input(end.tensor[0], None, end.tensor[1]), feed_nodes),
                                           used_names))
    used = {tensor.node for node in nodes for tensor in node.inputs}.union(*(node.controls for node in nodes))
    nodes[:0] = [node for node in feed_nodes.values() if node.name in used]
    unused = graph.functions.keys() - called_functions(graph, nodes)
    return graph.with_nodes(nodes).replace(without_functions=unused) if unused else graph.with_nodes(nodes)


def source_and_sink_nodes(graph: Graph) -> tuple[list[str], list[str]]:
    """Return the nodes that hang on SOURCE, which need no other node, and those on SINK, which no other node needs."""
    needed = {name for node in graph for name in (*(tensor.node for tensor in node.inputs), *node.controls)}
    return ([node.name for node in graph if not node.inputs and not node.controls],
            [name for name in graph.nodes if name not in needed])


def called_functions(graph: Graph, nodes: Collection[Node]) -> set[str]:
    """Return the functions of the graph that these nodes call, and the functions that those call."""
    callees: set[str] = set()
    stack: list[Any] = [value for node in nodes for value in node.attrs.values()]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += [item for item in value if isinstance(item, Func)]
        elif isinstance(value, Func):
            stack += value.attrs.values()
            if value.name in graph.functions and value.name not in callees:
                callees.add(value.name)
                stack += [attribute for node in graph.functions[value.name].nodes.values()
                          for attribute in node.attrs.values()]
    return callees


def _index_attributes(end: Endpoint) -> dict[str, Any]:
    return {"T": end.dtype, "index": end.position}


def _tensor_label(end: Endpoint) -> str:
    return f"{end.tensor[0]}_{end.tensor[1]}"


def _source(tensor: Input, feed_nodes: Mapping[Tensor, Node]) -> Input:
    feed_node = feed_nodes.get((tensor.node, tensor.index))
    return tensor if feed_node is None else Input(feed_node.name)


def _with_feeds(entry: Resolved, feed_nodes: Mapping[Tensor, Node], step_nodes: Collection[str]) -> Node:
    """Return the node with its default attributes, the fed tensors among its inputs replaced."""
    node = entry.node
    attrs = {name: _attribute_of_default(declared.type, declared.default) for name, declared in entry.op.attrs.items()
             if name not in node.attrs and declared.default is not REQUIRED}
    return node.replace(
        inputs=[_source(tensor, feed_nodes) for tensor in node.inputs],
        controls=[name if name in step_nodes else feed_nodes[name, 0].name for name in node.controls], attrs=attrs)


def _attribute_of_default(kind: str, default: Any) -> Any:
    """Return a default as an attribute of a node: declarations write shapes as tuples and floats as numbers."""
    if kind == "shape" and default is not None:
        return ShapeAttr(default)
    if kind == "float":
        return float(default)
    return tuple(map(float, default)) if kind == "list(float)" else default
