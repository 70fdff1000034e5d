"""Pass `dead-nodes`, on request: removes nodes that no kept node needs, and functions that no node calls.

The pass preserves the kept nodes, their names and their values. It is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from weft.api import Graph, Node, PassContext, pruned


def remove_dead_nodes(graph: Graph, context: PassContext) -> Graph:
    if context.kept:
        live = pruned(graph, context.kept)
        graph = live if len(live) < len(graph) else graph
    dead = graph.functions.keys() - _called(graph)
    return graph.replace(without_functions=sorted(dead)) if dead else graph


def _called(graph: Graph) -> set[str]:
    """The functions that nodes name, as an op or in an attribute, directly or within other functions. A function's
    gradient, `Gradient of f` in TensorFlow, names it by an attribute of its node."""
    found: set[str] = set()
    waiting = [*_named(graph)]
    while waiting:
        name = waiting.pop()
        if name in graph.functions and name not in found:
            found.add(name)
            function = graph.functions[name]
            waiting += _named(function.nodes.values())
            waiting += _within(function.attrs.values())
    return found


def _named(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        yield node.op
        yield from _within(node.attrs.values())


def _within(values: Iterable[Any]) -> Iterator[str]:
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
