"""Edits of single nodes, in a graph and in the bodies of its functions."""

from __future__ import annotations

from collections.abc import Callable

from heald.api import Graph, Node


def with_nodes_edited(graph: Graph, edit: Callable[[Node], Node]) -> Graph:
    """The graph after `edit` of each node, which keeps its name. The graph itself where that changes none."""
    changed = [after for node in graph if (after := edit(node)) is not node]
    functions = []
    for function in graph.functions.values():
        nodes = [edit(node) for node in function.nodes.values()]
        if any(after is not before for after, before in zip(nodes, function.nodes.values(), strict=True)):
            functions.append(function.replace(nodes=nodes))
    return graph.replace(nodes=changed, functions=functions or None) if changed or functions else graph
