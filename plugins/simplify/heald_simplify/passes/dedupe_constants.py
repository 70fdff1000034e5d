"""Pass `dedupe-constants`, on request: one Const for all with equal type, shape, bytes, device and control edges.

The pass preserves the values of all tensors, and the names of kept nodes and of colocation partners. The first constant
of each kind stays. It is idempotent. Constants in functions stay.
"""

from __future__ import annotations

from heald.api import Graph, Node, PassContext

_COLOCATED = b"loc:@"


def dedupe_constants(graph: Graph, context: PassContext) -> Graph:
    fixed = context.kept | _partners(graph)
    first: dict[tuple[object, ...], str] = {}
    merged: dict[str, str] = {}  # from a removed constant to the one that replaces it
    for node in graph:
        if node.op == "Const" and not node.inputs:
            key = (node.device, frozenset(node.controls), frozenset(node.attrs.items()))
            name = first.setdefault(key, node.name)
            if name != node.name and node.name not in fixed:
                merged[node.name] = name
    if not merged:
        return graph
    changed = [after for node in graph if (after := _reads_merged_constants(node, merged)) is not node]
    return graph.replace(nodes=[node for node in changed if node.name not in merged], without=merged)


def _reads_merged_constants(node: Node, merged: dict[str, str]) -> Node:
    if not any(name in merged for name in (*(i.node for i in node.inputs), *node.controls)):
        return node
    return node.replace(inputs=[i._replace(node=merged.get(i.node, i.node)) for i in node.inputs],
                        controls=dict.fromkeys(merged.get(name, name) for name in node.controls))


def _partners(graph: Graph) -> set[str]:
    """The nodes that others are colocated with."""
    groups = [node.attrs.get("_class") for node in graph]
    return {group.removeprefix(_COLOCATED).decode("utf-8", "replace") for groups_of_node in groups
            if isinstance(groups_of_node, tuple)
            for group in groups_of_node if isinstance(group, bytes)}
