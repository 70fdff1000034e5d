"""Traversal: topological order, consumers and ancestors of the nodes of a graph or of a function's body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...errors import InvalidArgument
from ...runtime.contract.structural import CONST, IDENTITY, NEXT_ITERATIONS, VALUELESS
from .graph_base import GraphBase
from .node import Node


def consumers(nodes: Mapping[str, Node]) -> dict[str, list[Node]]:
    """By name of each node, the nodes that consume a tensor of it or run after it. In order, each once."""
    consumers_by_name: dict[str, list[Node]] = {name: [] for name in nodes}
    for node in nodes.values():
        for name in dict.fromkeys((*(i.node for i in node.inputs), *node.controls)):
            if name in consumers_by_name:
                consumers_by_name[name].append(node)
    return consumers_by_name


def ancestors(nodes: Mapping[str, Node], names: Iterable[str]) -> set[str]:
    """The nodes with these names and all their dependencies, data and control. Names without a node are skipped."""
    stack = list(names)
    visited: set[str] = set()
    while stack:
        name = stack.pop()
        if name not in visited and name in nodes:
            visited.add(name)
            stack += [i.node for i in nodes[name].inputs]
            stack += nodes[name].controls
    return visited


def unconsumed_nodes(nodes: Mapping[str, Node]) -> list[str]:
    """The nodes that may be a model's results, in order: no node consumes an output of theirs.

    The reads of frozen variables are among them only where there are no others.
    """
    consumed = {i.node for node in nodes.values() for i in node.inputs}
    candidates = [name for name, node in nodes.items() if name not in consumed and node.op not in VALUELESS]
    return [name for name in candidates if not _reads_constant(nodes, name)] or candidates


def _reads_constant(nodes: Mapping[str, Node], name: str) -> bool:
    """True for an Identity of a constant, which freezing makes of a variable's read."""
    node = nodes[name]
    if node.op != IDENTITY or not node.inputs:
        return False
    source = nodes.get(node.inputs[0].node)
    return source is not None and source.op == CONST


class DisjointSets:
    """Names in sets; each name is in a set of its own until it is joined with another one."""

    __slots__ = ("_above",)

    def __init__(self) -> None:
        self._above: dict[str, str] = {}  # name -> another name of its set, towards the root

    def root(self, name: str) -> str:
        """Return the one name that stands for the set of this name."""
        above = self._above
        while (higher := above.get(name, name)) != name:
            above[name] = above.get(higher, higher)
            name = higher
        return name

    def join(self, name: str, other: str) -> None:
        """Unite the sets of two names."""
        root, other_root = self.root(name), self.root(other)
        if root != other_root:
            self._above[root] = other_root


def topological_order(graph: GraphBase | Mapping[str, Node]) -> list[Node]:
    """The nodes, each after its sources. Nodes that are in such an order already keep it.

    Edges out of NextIteration are the back edges of loops and do not count. Names without a node are skipped: in
    functions they are arguments. Raises InvalidArgument, which names the nodes, for any other cycle.
    """
    nodes = graph if isinstance(graph, Mapping) else graph.nodes
    if _is_ordered(nodes):
        return [*nodes.values()]
    order: list[Node] = []
    done: set[str] = set()
    for root in nodes:
        if root in done:
            continue
        path = {root: _sources(nodes, root)}  # from the root to the current node: remaining sources, by name
        while path:
            name = next(reversed(path))
            source = next((s for s in path[name] if s not in done), None)
            if source is None:
                path.popitem()
                done.add(name)
                order.append(nodes[name])
            elif source in path:
                raise _cycle_error([*path], source)
            else:
                path[source] = _sources(nodes, source)
    return order


def _is_ordered(nodes: Mapping[str, Node]) -> bool:
    """True when each node comes after all its sources. False for a source without a node, which might be a later
    one."""
    visited: set[str] = set()
    for name, node in nodes.items():
        for source in node.inputs:
            if source.node not in visited:
                return False
        if not visited.issuperset(node.controls):
            return False
        visited.add(name)
    return True


def _sources(nodes: Mapping[str, Node], name: str) -> Iterator[str]:
    node = nodes[name]
    for source in (*(i.node for i in node.inputs), *node.controls):
        if source in nodes and nodes[source].op not in NEXT_ITERATIONS:
            yield source


def _cycle_error(path: list[str], back: str) -> InvalidArgument:
    names = path[path.index(back) :]
    shown = names if len(names) <= 10 else [*names[:5], "...", *names[-4:]]
    return InvalidArgument(f"a cycle: {' <- '.join((*shown, back))}", node=back)
