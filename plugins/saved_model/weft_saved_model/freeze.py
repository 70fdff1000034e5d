"""Freezing: variables that a graph only reads become constants.

A variable with any other consumer, such as an assignment, stays a variable, and its reads stay reads. A read of a
constant needs no control edges: the read waits for nothing, and nothing waits for the read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from weft.api import Attrs, Graph, Node, TensorValue, constant, dtypes, without_idle_controls
from weft.compiler import attributes
from weft.contract import OpRegistry
from weft.errors import WeftError

from .lift_captures import Captures

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Read = Callable[[Node, Attrs, TensorValue], tuple[Node, ...]]
REFERENCES = frozenset({"VariableV2", "Variable"})


def freeze(graph: Graph, values: Mapping[str, Array], ops: OpRegistry) -> Graph:
    """Replace variables that the graph only reads by constants. `values` has the variables' values by node name."""
    captures, taken = Captures(graph), {source for node in graph for source in node.inputs}
    users = _users(graph, values)
    frozen = {name: TensorValue(values[name]) for name, found in users.items()
              if all(_only_reads(graph[name], node, index, ops) or captures.only_reads(node, index, taken)
                     for node, index in found)}
    handles = {name: value for name, value in frozen.items() if graph[name].op not in REFERENCES}
    readers = {node.name: node for name in handles for node, _ in users[name]}
    nodes = [constant(name, value, graph[name].device) for name, value in frozen.items()]
    for node in readers.values():
        if node.op in _READS:
            nodes += _READS[node.op](node, attributes(ops.get(node.op), node), handles[node.inputs[0].node])
    handed = [captures.handed(node, {index: handles[source.node].dtype for index, source in enumerate(node.inputs)
                                     if source.node in handles})
              for node in readers.values() if node.op not in _READS]
    graph = graph.replace(nodes=[*nodes, *handed], functions=captures.made or None)
    return without_idle_controls(graph, {node.name for node in nodes})


def _users(graph: Graph, names: Collection[str]) -> dict[str, list[tuple[Node, int]]]:
    """Return the consumers of each named node of the graph: the consuming node and the index of its input."""
    users: dict[str, list[tuple[Node, int]]] = {name: [] for name in names if name in graph}
    for node in graph:
        for index, source in enumerate(node.inputs):
            if source.node in users:
                users[source.node].append((node, index))
    return users


def _only_reads(variable: Node, node: Node, index: int, ops: OpRegistry) -> bool:
    try:
        op = ops.get(node.op)
        attributes(op, node)
    except WeftError:
        return False
    return not any(arg.is_ref for arg in op.inputs) if variable.op in REFERENCES else node.op in _READS and index == 0


def _reading(node: Node, op: str, inputs: Iterable[Any], **attrs: Any) -> Node:
    return Node(node.name, op, inputs, device=node.device, attrs=attrs)


def _read(node: Node, attrs: Attrs, _: TensorValue) -> tuple[Node, ...]:
    return (_reading(node, "Identity", node.inputs, T=attrs["dtype"]),)


def _gather(node: Node, attrs: Attrs, _: TensorValue) -> tuple[Node, ...]:
    import numpy as np

    axis = constant(f"{node.name}/axis", np.array(attrs["batch_dims"] % 2**31, np.int32))
    return axis, _reading(node, "GatherV2", (*node.inputs, axis.name), Tparams=attrs["dtype"], Taxis=dtypes.int32,
                          Tindices=attrs["Tindices"], batch_dims=attrs["batch_dims"])


def _gather_nd(node: Node, attrs: Attrs, _: TensorValue) -> tuple[Node, ...]:
    return (_reading(node, "GatherNd", node.inputs, Tparams=attrs["dtype"], Tindices=attrs["Tindices"]),)


def _shape(node: Node, attrs: Attrs, value: TensorValue) -> tuple[Node, ...]:
    import numpy as np

    return (constant(node.name, np.array(value.shape, attrs["out_type"].numpy), node.device),)


def _is_initialized(node: Node, _: Attrs, __: TensorValue) -> tuple[Node, ...]:
    import numpy as np

    return (constant(node.name, np.array(True), node.device),)


def _nothing(node: Node, _: Attrs, __: TensorValue) -> tuple[Node, ...]:
    return (Node(node.name, "NoOp", device=node.device),)


_READS: dict[str, Read] = {
    "DisableCopyOnRead": _nothing, "ReadVariableOp": _read, "ResourceGather": _gather, "ResourceGatherNd": _gather_nd,
    "VarIsInitializedOp": _is_initialized, "VariableShape": _shape,
}
