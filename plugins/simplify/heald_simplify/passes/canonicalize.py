"""Pass `canonicalize`, on request: a function has the nodes alone that its results and effects need.

A call runs the nodes that the function's results and control results need. The other nodes never run, stateful ones
neither. MLIR's canonicalizer removes the same nodes of TFG's functions. Nodes of the graph stay: `dead-nodes` removes
those. A node that a needed one is colocated with stays. Bodies of regions are functions, so they lose idle nodes, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from heald.api import Function, Graph, Node, PassContext

_COLOCATED = b"loc:@"


def canonicalize(graph: Graph, _: PassContext) -> Graph:
    functions = []
    for function in graph.functions.values():
        needed = _needed_nodes(function)
        if len(needed) < len(function.nodes):
            functions.append(function.replace(nodes=[node for node in function.nodes.values() if node.name in needed]))
    return graph.replace(functions=functions) if functions else graph


def _needed_nodes(function: Function) -> set[str]:
    """The names of the nodes that run in a call of the function."""
    needed: set[str] = set()
    waiting = [*(source.node for source in function.ret.values()), *function.control_ret.values()]
    while waiting:
        name = waiting.pop()
        if name in function.nodes and name not in needed:
            needed.add(name)
            waiting += _sources(function.nodes[name])
    return needed


def _sources(node: Node) -> Iterator[str]:
    yield from (source.node for source in node.inputs)
    yield from node.controls
    groups = node.attrs.get("_class")
    for group in groups if isinstance(groups, tuple) else ():
        if isinstance(group, bytes):
            yield group.removeprefix(_COLOCATED).decode("utf-8", "replace")
