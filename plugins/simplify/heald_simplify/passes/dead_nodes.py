"""Pass `dead-nodes`, on request: removes nodes that no kept node needs, and functions that no node calls.

With an entry function, the functions that it calls stay, too. A fed node that has inputs becomes a Placeholder, so that
the nodes in front of it are dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from heald.api import Graph, Node, PassContext, placed_like, pruned


def remove_dead_nodes(graph: Graph, context: PassContext) -> Graph:
    if context.kept:
        graph = _with_placeholders_for_feeds(graph, context)
        live = pruned(graph, context.kept)
        graph = live if len(live) < len(graph) else graph
    dead = graph.functions.keys() - _called_functions(graph, () if context.entry is None else (context.entry,))
    return graph.replace(without_functions=sorted(dead)) if dead else graph


def _with_placeholders_for_feeds(graph: Graph, context: PassContext) -> Graph:
    """The graph with placeholders for fed nodes of one output that have inputs."""
    placeholders = []
    for tensor in context.feeds:
        node = graph[tensor.partition(":")[0]]
        entry = context.resolve(node)
        if entry is not None and (node.inputs or node.controls) and len(entry.output_tensors) == 1:
            placeholders.append(placed_like(Node(node.name, "Placeholder", attrs={
                "dtype": entry.output_tensors[0].dtype, "shape": None}), node))
    return graph.replace(nodes=placeholders) if placeholders else graph


def _called_functions(graph: Graph, entries: Iterable[str]) -> set[str]:
    """The functions that nodes name, as an op or in an attribute, directly or within other functions. A function's
    gradient, `Gradient of f` in TensorFlow, names it by an attribute of its node."""
    names: set[str] = set()
    waiting = [*entries, *_names_in_nodes(graph)]
    while waiting:
        name = waiting.pop()
        if name in graph.functions and name not in names:
            names.add(name)
            function = graph.functions[name]
            waiting += _names_in_nodes(function.nodes.values())
            waiting += _names_in_attributes(function.attrs.values())
    return names


def _names_in_nodes(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        yield node.op
        yield from _names_in_attributes(node.attrs.values())


def _names_in_attributes(values: Iterable[Any]) -> Iterator[str]:
    """All names in values of attributes: of functions and of their attributes, and texts, which may name a function."""
    stack = [*values]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack += value
        elif isinstance(value, bytes):
            yield value.decode("utf-8", "replace")
        elif hasattr(value, "attrs"):
            yield value.name
            stack += value.attrs.values()
