"""Unused functions: functions that no node of a graph calls, directly or through other functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heald.api import Graph, Node
from heald.graphs.graph import Func, Function


def without_unused_functions(graph: Graph) -> Graph:
    """Remove the functions that no node calls any more."""
    used: dict[str, Function] = {}
    waiting = [name for node in graph for name in _functions_named_by(node)]
    while waiting:
        name = waiting.pop()
        function = graph.functions.get(name)
        if function is not None and name not in used:
            used[name] = function
            waiting += [inner for node in function.nodes.values() for inner in _functions_named_by(node)]
    return graph.replace(without_functions=graph.functions.keys() - used.keys())


def _functions_named_by(node: Node) -> Iterator[str]:
    yield node.op
    for value in node.attrs.values():
        yield from (func.name for func in _functions(value))


def _functions(value: Any) -> Iterator[Func]:
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, Func):
            yield item
