"""The pass "freeze": variables that a session's graph only reads become constants, with the values they begin with.

A variable with any other consumer, such as an assignment, stays a variable, and its reads stay reads. A read of a
constant needs no control edges, unless an effect comes before the read: nodes that wait for the read wait for the
effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from heald.api import (
    Attrs,
    Graph,
    Initializer,
    InvalidArgument,
    Node,
    PassContext,
    TensorValue,
    constant,
    dtypes,
    merge_shapes,
    new_name,
    pruned,
    topological_order,
    without_idle_controls,
)

from .lift_captures import Captures
from .unused_functions import without_unused_functions

REFERENCE_OPS = frozenset({"VariableV2", "Variable"})
ASSIGN_OPS = {"VarHandleOp": "AssignVariableOp", **dict.fromkeys(REFERENCE_OPS, "Assign")}  # by op of a variable
OpOf = Callable[[Node], Any]  # returns the OpDef of a node's op, or None for a node that does not fit its op
Consumers = dict[str, list[tuple[Node, int]]]  # by variable, the consuming nodes and the indices of their inputs


def freeze(graph: Graph, context: PassContext) -> Graph:
    """Replace the variables that the graph only reads, and that initializers assign one fed value, by
    constants.

    The nodes of these initializers leave the graph. Raises the errors of reading a value.
    """
    first_values = _first_values(graph, context.initial_state)
    if not first_values:
        return graph

    def op_of(node: Node) -> Any:
        entry = context.resolve(node)
        return None if entry is None else entry.op

    unassigned = graph.replace(without=[first_value.assign for first_value in first_values.values()])
    read = only_read(unassigned, first_values, op_of)
    first_arrays = {name: _first_tensor(first_values[name], context.resolve(graph[name])) for name in read}
    values = {name: value for name, value in first_arrays.items() if value is not None}
    consumers = {name: read[name] for name in values}
    idle, captures = idle_reads(graph, consumers, op_of), Captures(graph)
    nodes = [*_constants(graph, values, consumers, context)]
    late = [node.replace(controls=graph[node.name].controls) for node in nodes
            if node.name in graph and node.name not in idle]
    nodes = [*{node.name: node for node in (*nodes, *late)}.values(),
             *_nodes_with_values(graph, values, consumers, captures)]
    graph = graph.replace(nodes=nodes, functions=captures.copies or None,
                          without=[name for variable in values for name in first_values[variable][:2]])
    graph = without_idle_controls(graph, idle)
    return without_unused_functions(graph) if captures.copies else graph


def only_read(graph: Graph, names: Collection[str], op_of: OpOf) -> Consumers:
    """Return the variables among the named nodes that the graph only reads, with their consumers."""
    captures, consumed = Captures(graph), {source for node in graph for source in node.inputs}
    owners = Counter(map(_sharing_key, _variables(graph)))
    return {name: uses for name, uses in _consumers_of(graph, names).items()
            if (_sharing_key(graph[name]) is None or owners[_sharing_key(graph[name])] == 1)
            and all(_only_reads(graph[name], node, index, op_of) or captures.only_reads(node, index, consumed)
                    for node, index in uses)}


def idle_reads(graph: Graph, read: Consumers, op_of: OpOf) -> set[str]:
    """Return the names of the variables in `read` and of their reads, without the nodes after an effect.

    Control edges of the returned nodes order nothing.
    """
    reads = {*read, *(node.name for name in read for node in _readers(graph, name, read) if node.op in READ_OPS)}
    visited: set[str] = set()
    late: set[str] = set()  # the nodes with an effect, and those after one
    for node in topological_order(pruned(graph, reads)):
        before = {*(source.node for source in node.inputs), *node.controls}
        closes_loop = not visited.issuperset(before)  # a Merge comes before one of its sources
        if closes_loop or not late.isdisjoint(before) or (node.name not in reads and has_effect(op_of(node))):
            late.add(node.name)
        visited.add(node.name)
    return reads - late


def has_effect(op: Any) -> bool:
    """True for the OpDef of a stateful op or of one that takes references, and for None, an unknown op."""
    return op is None or op.stateful or any(arg.is_ref for arg in op.inputs)


class FirstAssignment(NamedTuple):
    """The nodes that assign a variable its first value: `assign`, and the value's `placeholder`."""

    assign: str
    placeholder: str
    feeds: Callable[[], Mapping[str, Any]]


def _first_values(graph: Graph, state: Iterable[Initializer]) -> dict[str, FirstAssignment]:
    """Return the variables that one initializer assigns a fed value, where no other node uses the initializer's
    nodes."""
    uses = Counter(name for node in graph for name in (*(source.node for source in node.inputs), *node.controls))
    by_variable: dict[str, list[FirstAssignment]] = {}
    for initializer in state:
        assign = graph.nodes.get(initializer.target)
        holders = [graph[name] for name in initializer.resources if name in graph]
        variable = holders[0] if len(holders) == 1 else None
        if variable is None or assign is None or assign.op != ASSIGN_OPS.get(variable.op) or len(assign.inputs) != 2:
            continue
        target, source = assign.inputs
        placeholder = graph[source.node]
        if (target.node == variable.name and placeholder.op == "Placeholder"
                and not (placeholder.controls or assign.controls)
                and (uses[placeholder.name], uses[assign.name]) == (1, 0)):
            first_value = FirstAssignment(assign.name, placeholder.name, initializer.values)
            by_variable.setdefault(variable.name, []).append(first_value)
    return {name: first_values[0] for name, first_values in by_variable.items() if len(first_values) == 1}


def _first_tensor(first_value: FirstAssignment, variable: Any) -> TensorValue | None:
    """Return the value that a variable begins with, or None for one that the variable (Resolved or None) cannot hold.
    """
    import numpy as np

    feeds = first_value.feeds()
    array = feeds.get(first_value.placeholder, feeds.get(f"{first_value.placeholder}:0"))
    if variable is None or len(feeds) != 1 or not isinstance(array, np.ndarray):
        return None
    try:
        value = TensorValue(array)
        merge_shapes(value.shape, variable.attrs["shape"])
    except (InvalidArgument, ValueError):
        return None
    return value if value.dtype is variable.attrs["dtype"] else None


def _constants(
    graph: Graph, values: Mapping[str, TensorValue], consumers: Consumers, context: PassContext
) -> Iterator[Node]:
    """Yield the constants, and the nodes that stand for reads of these variables."""
    used_names = set(graph.nodes)
    for name, value in values.items():
        yield constant(name, value, graph[name].device)
        for node in _readers(graph, name, consumers):
            if node.op in READ_OPS:
                attrs = context.resolve(node).attrs
                yield from READ_OPS[node.op](VariableRead(node, attrs, value, used_names))


def _nodes_with_values(
    graph: Graph, values: Mapping[str, TensorValue], consumers: Consumers, captures: Captures
) -> Iterator[Node]:
    """Yield the nodes of control flow with values instead of handles."""
    handles = {name: value.dtype for name, value in values.items() if graph[name].op not in REFERENCE_OPS}
    takers = {node.name: node for name in handles for node in _readers(graph, name, consumers)}
    for node in takers.values():
        if node.op not in READ_OPS:
            yield captures.with_values(node, {index: handles[source.node] for index, source in enumerate(node.inputs)
                                              if source.node in handles})


def _readers(graph: Graph, variable: str, consumers: Consumers) -> Iterable[Node]:
    """Return the consumers of a variable's handle; consumers of a reference take the constant as they are."""
    return () if graph[variable].op in REFERENCE_OPS else (node for node, _ in consumers[variable])


def _consumers_of(graph: Graph, names: Collection[str]) -> Consumers:
    """Return the consumers of each named node of the graph."""
    users: Consumers = {name: [] for name in names if name in graph}
    for node in graph:
        for index, source in enumerate(node.inputs):
            if source.node in users:
                users[source.node].append((node, index))
    return users


def _variables(graph: Graph) -> Iterator[Node]:
    for nodes in (graph.nodes, *(function.nodes for function in graph.functions.values())):
        yield from (node for node in nodes.values() if node.op in ASSIGN_OPS)


def _sharing_key(variable: Node) -> Any:
    """Return the name under which nodes share a variable, or None for a variable of the node's own."""
    shared = variable.attrs.get("shared_name")
    return (variable.attrs.get("container") or b"", shared) if shared else None


def _only_reads(variable: Node, node: Node, index: int, op_of: OpOf) -> bool:
    op = op_of(node)
    if op is None or variable.op not in REFERENCE_OPS:
        return op is not None and node.op in READ_OPS and index == 0
    return not any(arg.is_ref for arg in op.inputs)


class VariableRead(NamedTuple):
    """A node that reads a frozen variable, its attributes, the variable's value, and the names that the graph has."""

    node: Node
    attrs: Attrs
    value: TensorValue
    used_names: set[str]

    def make_node(self, op: str, inputs: Iterable[Any] = (), **attrs: Any) -> Node:
        return Node(self.node.name, op, inputs, device=self.node.device, attrs=attrs)

    def constant(self, value: Any) -> Node:
        return constant(self.node.name, value, self.node.device)


def _make_identity(reader: VariableRead) -> tuple[Node, ...]:
    return (reader.make_node("Identity", reader.node.inputs, T=reader.attrs["dtype"]),)


def _gather(reader: VariableRead) -> tuple[Node, ...]:
    import numpy as np

    node, attrs = reader.node, reader.attrs
    axis = constant(new_name(f"{node.name}/axis", reader.used_names), np.array(attrs["batch_dims"] % 2**31, np.int32))
    return axis, reader.make_node("GatherV2", (*node.inputs, axis.name), Tparams=attrs["dtype"], Taxis=dtypes.int32,
                                  Tindices=attrs["Tindices"], batch_dims=attrs["batch_dims"])


def _gather_nd(reader: VariableRead) -> tuple[Node, ...]:
    attrs = reader.attrs
    return (reader.make_node("GatherNd", reader.node.inputs, Tparams=attrs["dtype"], Tindices=attrs["Tindices"]),)


def _shape(reader: VariableRead) -> tuple[Node, ...]:
    import numpy as np

    return (reader.constant(np.array(reader.value.shape, reader.attrs["out_type"].numpy)),)


def _is_initialized(reader: VariableRead) -> tuple[Node, ...]:
    import numpy as np

    return (reader.constant(np.array(True)),)


def _no_op(reader: VariableRead) -> tuple[Node, ...]:
    return (reader.make_node("NoOp"),)


READ_OPS: dict[str, Callable[[VariableRead], tuple[Node, ...]]] = {
    "DisableCopyOnRead": _no_op, "ReadVariableOp": _make_identity, "ResourceGather": _gather,
    "ResourceGatherNd": _gather_nd,
    "VarIsInitializedOp": _is_initialized, "VariableShape": _shape,
}
