"""The nodes of two graphs, matched: by name first, then by structure.

Matching by structure follows tensors from nodes that are matched, in both directions. Downwards, a node matches the
first free node with the same op and the same matched sources. Upwards, the inputs of matched nodes match position by
position. A round goes both ways, and rounds end when one finds nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heald import Graph

MOST_ROUNDS = 8

Names = dict[str, str]  # the name in the first graph by the name in the second


def match_nodes(first: Graph, second: Graph, seeds: Mapping[str, str]) -> Names:
    """Return the first graph's name of each node of the second that has a partner. `seeds` are known partners."""
    partners = {name: name for name in second.nodes if name in first}
    partnered = set(partners)
    for name, partner in seeds.items():
        if name in second and name not in partners and partner in first and partner not in partnered:
            partners[name] = partner
            partnered.add(partner)
    for _ in range(MOST_ROUNDS):
        count = len(partners)
        _match_downwards(first, second, partners, partnered)
        _match_upwards(first, second, partners, partnered)
        if len(partners) == count:
            break
    return partners


def renamed_graph(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return the graph with other names for some nodes."""
    if all(name == other for name, other in names.items()):
        return graph
    return graph.with_nodes([_rename_node(node, names) for node in graph])


def _rename_node(node: Any, names: Mapping[str, str]) -> Any:
    inputs = [tensor._replace(node=names.get(tensor.node, tensor.node)) for tensor in node.inputs]
    controls = [names.get(control, control) for control in node.controls]
    name = names.get(node.name, node.name)
    if (name, tuple(inputs), tuple(controls)) == (node.name, node.inputs, node.controls):
        return node
    return node.replace(name=name, inputs=inputs, controls=controls)


def _match_downwards(first: Graph, second: Graph, partners: Names, partnered: set[str]) -> None:
    from heald.api import topological_order

    own_names = {name: name for name in partnered}
    free: dict[Any, list[str]] = defaultdict(list)
    waiting: dict[Any, list[str]] = defaultdict(list)
    for node in topological_order(first):
        if node.name not in partnered and (key := _key(first, node, own_names)) is not None:
            free[key].append(node.name)
    for node in topological_order(second):
        if node.name not in partners and (key := _key(second, node, partners)) is not None:
            waiting[key].append(node.name)
    for key, names in waiting.items():
        for name, partner in zip(names, free.get(key, ()), strict=False):
            partners[name] = partner
            partnered.add(partner)


def _key(graph: Graph, node: Any, partners: Mapping[str, str]) -> Any:
    """Return the op and the sources of a node; None without a matched source."""
    sources = [(partners.get(tensor.node) or ("", graph.nodes[tensor.node].op if tensor.node in graph else ""),
                tensor.index) for tensor in node.inputs]
    return (node.op, *sources) if any(isinstance(source, str) for source, _ in sources) else None


def _match_upwards(first: Graph, second: Graph, partners: Names, partnered: set[str]) -> None:
    stack = [*partners.items()]
    while stack:
        name, partner = stack.pop()
        theirs, ours = second[name].inputs, first[partner].inputs
        for source, target in zip(theirs, ours, strict=False) if len(theirs) == len(ours) else ():
            is_free = source.node in second and source.node not in partners and target.node in first
            if is_free and target.node not in partnered and second[source.node].op == first[target.node].op:
                partners[source.node] = target.node
                partnered.add(target.node)
                stack.append((source.node, target.node))
