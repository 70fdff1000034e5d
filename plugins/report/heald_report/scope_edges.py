"""The edges of a body as its scopes show them: between members of a scope, and between members and ports.

An edge between two nodes appears in the innermost scope that has both. In each deeper scope around one of its ends, it
joins a member and a port, which stands for the other end as the scope in common shows it. An edge of control has no
ports: a node that waits for the whole graph would hide the flow of tensors in every scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .node_table import sources_of
from .scopes import Scope, scope_tree

NEXT_ITERATIONS = ("NextIteration", "RefNextIteration")
MOST_PORTS = 24  # of a picture in each direction

Key = str | int | None  # a node by name, a scope by number; None for ports beyond the most
Port = tuple[str, Key]  # of "from" or "to"
Vertex = str | int | Port
M = TypeVar("M")


class ScopeDraft:
    """A scope before its layout: members in order, edges between vertices with the edges of nodes that each stands for,
    ports in order, and the constants that a member stands for."""

    def __init__(self, scope: Scope, parent: int) -> None:
        self.scope = scope
        self.parent = parent
        self.members: list[str | int] = []
        self.labels: dict[str | int, str] = {}
        self.scope_labels: dict[int, str] = {}  # of all scopes of the body
        self.edges: dict[tuple[Vertex, Vertex], list[tuple[str, str]]] = {}
        self.ports: dict[str, dict[Port, None]] = {"from": {}, "to": {}}
        self.folded: dict[str | int, list[str]] = {}

    def port(self, direction: str, key: Key) -> Port:
        ports = self.ports[direction]
        port = (direction, key)
        if port not in ports and len(ports) >= MOST_PORTS:
            port = (direction, None)
        ports[port] = None
        return port

    def join(self, start: Vertex, end: Vertex, edge: tuple[str, str]) -> None:
        if start != end:
            self.edges.setdefault((start, end), []).append(edge)


class _Paths(NamedTuple):
    """`of_node`: the scopes around a node, from the root's number on."""

    of_node: dict[str, list[int]]

    def member(self, node: str, depth: int) -> str | int:
        """Return the member of the scope at this depth that is the node or has it."""
        path = self.of_node[node]
        return node if depth == len(path) - 1 else path[depth + 1]


def draft_scopes(nodes: Mapping[str, Any]) -> list[ScopeDraft]:
    """Return a draft for each scope of these nodes. `parent` and scopes among the members are indices of this list."""
    drafts, paths = _scopes(nodes)
    folded = _fold_constants(nodes, drafts, paths)
    edges = [(source, name) for name, node in nodes.items() for source in sources_of(node)
             if source in nodes and source not in folded]
    for source, name in edges:
        _add_edge(drafts, paths, source, name, is_control=all(tensor.node != source for tensor in nodes[name].inputs))
    scope_labels = {key: label for draft in drafts for key, label in draft.labels.items() if isinstance(key, int)}
    for draft in drafts:
        draft.scope_labels = scope_labels
        draft.members = _flow_order(draft, [member for member in draft.labels if member not in folded], nodes)
    return drafts


def _flow_order(draft: ScopeDraft, members: Sequence[str | int], nodes: Mapping[str, Any]) -> list[str | int]:
    """Return the members so that each follows its sources. The next iterations of a loop are sources of none; another
    circle begins where the search first meets it."""
    sources: dict[str | int, list[str | int]] = {member: [] for member in members}
    for (start, end), pairs in draft.edges.items():
        leads_back = all(nodes[source].op in NEXT_ITERATIONS for source, _ in pairs)
        if not (isinstance(start, tuple) or isinstance(end, tuple) or leads_back):
            sources[end].append(start)
    return in_flow_order(members, sources)


def in_flow_order(members: Sequence[M], sources: Mapping[M, Sequence[M]]) -> list[M]:
    """Return the members so that each follows those of its sources that are members. A circle begins where the search
    first meets it."""
    own, ordered, visited = {*members}, dict[M, None](), set[M]()
    for member in members:
        stack = [member]
        while stack:
            top = stack[-1]
            waiting = [] if top in visited else [s for s in sources[top] if s in own and s not in visited]
            visited.add(top)
            if waiting:
                stack += reversed(waiting)
            else:
                ordered[stack.pop()] = None
    return [*ordered]


def _scopes(nodes: Mapping[str, Any]) -> tuple[list[ScopeDraft], _Paths]:
    drafts: list[ScopeDraft] = []
    of_node: dict[str, list[int]] = {}
    stack: list[tuple[Scope, list[int], str]] = [(scope_tree(nodes), [], "")]
    while stack:
        scope, path, label = stack.pop()
        number = len(drafts)
        drafts.append(ScopeDraft(scope, path[-1] if path else -1))
        if path:
            drafts[path[-1]].labels[number] = label
        for inner_label, member in scope.members.items():
            if isinstance(member, Scope):
                stack.append((member, [*path, number], inner_label))
            else:
                drafts[number].labels[member] = inner_label
                of_node[member] = [*path, number]
    return drafts, _Paths(of_node)


def _fold_constants(nodes: Mapping[str, Any], drafts: Sequence[ScopeDraft], paths: _Paths) -> set[str]:
    """Return the constants that a single member of their own scope consumes. The member stands for them."""
    consumers: dict[str, list[str]] = {name: [] for name, node in nodes.items()
                                       if node.op == "Const" and not sources_of(node)}
    for name, node in nodes.items():
        for source in sources_of(node):
            if source in consumers:
                consumers[source].append(name)
    folded = set()
    for constant, names in consumers.items():
        path = paths.of_node[constant]
        if names and all(paths.of_node[name][:len(path)] == path for name in names):
            members = {paths.member(name, len(path) - 1) for name in names}
            if len(members) == 1:
                drafts[path[-1]].folded.setdefault(members.pop(), []).append(constant)
                folded.add(constant)
    return folded


def _add_edge(drafts: Sequence[ScopeDraft], paths: _Paths, source: str, target: str, *, is_control: bool) -> None:
    up, down = paths.of_node[source], paths.of_node[target]
    common = next((depth for depth, pair in enumerate(zip(up, down, strict=False)) if pair[0] != pair[1]),
                  min(len(up), len(down))) - 1
    start, end = paths.member(source, common), paths.member(target, common)
    drafts[up[common]].join(start, end, (source, target))
    if is_control:
        return
    for depth in range(common + 1, len(down)):
        draft = drafts[down[depth]]
        draft.join(draft.port("from", start), paths.member(target, depth), (source, target))
    for depth in range(common + 1, len(up)):
        draft = drafts[up[depth]]
        draft.join(paths.member(source, depth), draft.port("to", end), (source, target))
