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

REFERENCES = frozenset({"VariableV2", "Variable"})
ASSIGNS = {"VarHandleOp": "AssignVariableOp", **dict.fromkeys(REFERENCES, "Assign")}  # by op of a variable
OpOf = Callable[[Node], Any]  # returns the OpDef of a node's op, or None for a node that does not fit its op
Consumers = dict[str, list[tuple[Node, int]]]  # by variable, the consuming nodes and the indices of their inputs


def freeze(graph: Graph, context: PassContext) -> Graph:
    """Replace the variables that the graph only reads, and that initializers assign one fed value, by constants.

    The nodes of these initializers leave the graph. Raises the errors of reading a value.
    """
    begun = _begun(graph, context.initial_state)
    if not begun:
        return graph

    def op_of(node: Node) -> Any:
        entry = context.resolve(node)
        return None if entry is None else entry.op

    read = only_read(graph.replace(without=[each.assign for each in begun.values()]), begun, op_of)
    found = {name: _value(begun[name], context.resolve(graph[name])) for name in read}
    values = {name: value for name, value in found.items() if value is not None}
    consumers = {name: read[name] for name in values}
    idle, captures = idle_reads(graph, consumers, op_of), Captures(graph)
    nodes = [*_constants(graph, values, consumers, context)]
    late = [node.replace(controls=graph[node.name].controls) for node in nodes
            if node.name in graph and node.name not in idle]
    nodes = [*{node.name: node for node in (*nodes, *late)}.values(), *_handed(graph, values, consumers, captures)]
    graph = graph.replace(nodes=nodes, functions=captures.made or None,
                          without=[name for variable in values for name in begun[variable][:2]])
    graph = without_idle_controls(graph, idle)
    return without_unused_functions(graph) if captures.made else graph


def only_read(graph: Graph, names: Collection[str], op_of: OpOf) -> Consumers:
    """Return the variables among the named nodes that the graph only reads, with their consumers."""
    captures, taken = Captures(graph), {source for node in graph for source in node.inputs}
    owners = Counter(map(_owner, _variables(graph)))
    return {name: found for name, found in _users(graph, names).items()
            if (_owner(graph[name]) is None or owners[_owner(graph[name])] == 1)
            and all(_only_reads(graph[name], node, index, op_of) or captures.only_reads(node, index, taken)
                    for node, index in found)}


def idle_reads(graph: Graph, read: Consumers, op_of: OpOf) -> set[str]:
    """Return the names of the variables in `read` and of their reads, without the nodes after an effect.

    Control edges of the returned nodes order nothing.
    """
    reads = {*read, *(node.name for name in read for node in _readers(graph, name, read) if node.op in READS)}
    seen: set[str] = set()
    late: set[str] = set()  # the nodes with an effect, and those after one
    for node in topological_order(pruned(graph, reads)):
        before = {*(source.node for source in node.inputs), *node.controls}
        closes_loop = not seen.issuperset(before)  # a Merge comes before one of its sources
        if closes_loop or not late.isdisjoint(before) or (node.name not in reads and has_effect(op_of(node))):
            late.add(node.name)
        seen.add(node.name)
    return reads - late


def has_effect(op: Any) -> bool:
    """True for the OpDef of a stateful op or of one that takes references, and for None, an unknown op."""
    return op is None or op.stateful or any(arg.is_ref for arg in op.inputs)


class _Begun(NamedTuple):
    """The nodes that assign a variable its first value: `assign`, and `fed`, the placeholder of the value."""

    assign: str
    fed: str
    values: Callable[[], Mapping[str, Any]]


def _begun(graph: Graph, state: Iterable[Initializer]) -> dict[str, _Begun]:
    """Return the variables that one initializer assigns a fed value, where no other node uses the nodes of that."""
    uses = Counter(name for node in graph for name in (*(source.node for source in node.inputs), *node.controls))
    found: dict[str, list[_Begun]] = {}
    for initializer in state:
        assign = graph.nodes.get(initializer.target)
        held = [graph[name] for name in initializer.resources if name in graph]
        variable = held[0] if len(held) == 1 else None
        if variable is None or assign is None or assign.op != ASSIGNS.get(variable.op) or len(assign.inputs) != 2:
            continue
        target, source = assign.inputs
        fed = graph[source.node]
        if (target.node == variable.name and fed.op == "Placeholder" and not (fed.controls or assign.controls)
                and (uses[fed.name], uses[assign.name]) == (1, 0)):
            found.setdefault(variable.name, []).append(_Begun(assign.name, fed.name, initializer.values))
    return {name: each[0] for name, each in found.items() if len(each) == 1}


def _value(begun: _Begun, variable: Any) -> TensorValue | None:
    """Return the value that a variable begins with, or None for one that the variable (Resolved or None) cannot hold.
    """
    import numpy as np

    given = begun.values()
    array = given.get(begun.fed, given.get(f"{begun.fed}:0"))
    if variable is None or len(given) != 1 or not isinstance(array, np.ndarray):
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
    taken = set(graph.nodes)
    for name, value in values.items():
        yield constant(name, value, graph[name].device)
        for node in _readers(graph, name, consumers):
            if node.op in READS:
                yield from READS[node.op](_Reader(node, context.resolve(node).attrs, value, taken))


def _handed(
    graph: Graph, values: Mapping[str, TensorValue], consumers: Consumers, captures: Captures
) -> Iterator[Node]:
    """Yield the nodes of control flow with values instead of handles."""
    handles = {name: value.dtype for name, value in values.items() if graph[name].op not in REFERENCES}
    takers = {node.name: node for name in handles for node in _readers(graph, name, consumers)}
    for node in takers.values():
        if node.op not in READS:
            yield captures.handed(node, {index: handles[source.node] for index, source in enumerate(node.inputs)
                                         if source.node in handles})


def _readers(graph: Graph, variable: str, consumers: Consumers) -> Iterable[Node]:
    """Return the consumers of a variable's handle; consumers of a reference take the constant as they are."""
    return () if graph[variable].op in REFERENCES else (node for node, _ in consumers[variable])


def _users(graph: Graph, names: Collection[str]) -> Consumers:
    """Return the consumers of each named node of the graph."""
    users: Consumers = {name: [] for name in names if name in graph}
    for node in graph:
        for index, source in enumerate(node.inputs):
            if source.node in users:
                users[source.node].append((node, index))
    return users


def _variables(graph: Graph) -> Iterator[Node]:
    for nodes in (graph.nodes, *(function.nodes for function in graph.functions.values())):
        yield from (node for node in nodes.values() if node.op in ASSIGNS)


def _owner(variable: Node) -> Any:
    """Return the name under which nodes share a variable, or None for a variable of the node's own."""
    shared = variable.attrs.get("shared_name")
    return (variable.attrs.get("container") or b"", shared) if shared else None


def _only_reads(variable: Node, node: Node, index: int, op_of: OpOf) -> bool:
    op = op_of(node)
    if op is None or variable.op not in REFERENCES:
        return op is not None and node.op in READS and index == 0
    return not any(arg.is_ref for arg in op.inputs)


class _Reader(NamedTuple):
    """A node that reads a frozen variable, its attributes, the variable's value, and the names that the graph has."""

    node: Node
    attrs: Attrs
    value: TensorValue
    taken: set[str]

    def replaced(self, op: str, inputs: Iterable[Any] = (), **attrs: Any) -> Node:
        return Node(self.node.name, op, inputs, device=self.node.device, attrs=attrs)

    def constant(self, value: Any) -> Node:
        return constant(self.node.name, value, self.node.device)


def _read(reader: _Reader) -> tuple[Node, ...]:
    return (reader.replaced("Identity", reader.node.inputs, T=reader.attrs["dtype"]),)


def _gather(reader: _Reader) -> tuple[Node, ...]:
    import numpy as np

    node, attrs = reader.node, reader.attrs
    axis = constant(new_name(f"{node.name}/axis", reader.taken), np.array(attrs["batch_dims"] % 2**31, np.int32))
    return axis, reader.replaced("GatherV2", (*node.inputs, axis.name), Tparams=attrs["dtype"], Taxis=dtypes.int32,
                                 Tindices=attrs["Tindices"], batch_dims=attrs["batch_dims"])


def _gather_nd(reader: _Reader) -> tuple[Node, ...]:
    attrs = reader.attrs
    return (reader.replaced("GatherNd", reader.node.inputs, Tparams=attrs["dtype"], Tindices=attrs["Tindices"]),)


def _shape(reader: _Reader) -> tuple[Node, ...]:
    import numpy as np

    return (reader.constant(np.array(reader.value.shape, reader.attrs["out_type"].numpy)),)


def _is_initialized(reader: _Reader) -> tuple[Node, ...]:
    import numpy as np

    return (reader.constant(np.array(True)),)


def _nothing(reader: _Reader) -> tuple[Node, ...]:
    return (reader.replaced("NoOp"),)


READS: dict[str, Callable[[_Reader], tuple[Node, ...]]] = {
    "DisableCopyOnRead": _nothing, "ReadVariableOp": _read, "ResourceGather": _gather, "ResourceGatherNd": _gather_nd,
    "VarIsInitializedOp": _is_initialized, "VariableShape": _shape,
}
