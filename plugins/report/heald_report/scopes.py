"""Name scopes: the tree that the names of nodes state, by the parts between slashes.

A scope with a single member gives way to the member. A scope with more members than a picture may have is divided into
parts, in the order of the graph. Names may have any number of slashes, so the depth is bounded, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MOST_MEMBERS = 240  # of a scope; a picture has boxes for its surroundings, too
MOST_PARTS = 24  # of a name; the rest of a longer name is one part


class Scope:
    """`members`: by label, scopes and names of nodes, in the order of the graph."""

    __slots__ = ("members", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: dict[str, Scope | str] = {}

    def nodes(self) -> Iterator[str]:
        """Yield the names of all nodes in the scope."""
        for member in self.members.values():
            if isinstance(member, Scope):
                yield from member.nodes()
            else:
                yield member


def scope_tree(names: Iterable[str]) -> Scope:
    """Return the root of the scopes of these nodes."""
    root = Scope("")
    for name in names:
        *parts, label = name.split("/", MOST_PARTS)
        scope = root
        for part in parts:
            scope = _child(scope, part)
        scope.members[label] = name
    return _divide_large_scopes(_merge_single_members(root))


def _child(scope: Scope, part: str) -> Scope:
    """Return the scope of this name. A slash behind the name tells it from a node of the same name."""
    label = f"{part}/"
    child = scope.members.get(label)
    if not isinstance(child, Scope):
        child = scope.members[label] = Scope(f"{scope.name}{label}")
    return child


def _merge_single_members(scope: Scope) -> Scope:
    """Put the only member of a scope in the place of the scope."""
    members: dict[str, Scope | str] = {}
    for label, member in scope.members.items():
        if isinstance(member, Scope):
            _merge_single_members(member)
            if len(member.members) == 1:
                (inner, member), = member.members.items()
                label = f"{label}{inner}"
        members[label] = member
    scope.members = members
    return scope


def _divide_large_scopes(scope: Scope) -> Scope:
    for member in scope.members.values():
        if isinstance(member, Scope):
            _divide_large_scopes(member)
    while len(scope.members) > MOST_MEMBERS:
        scope.members = _scope_parts(scope)
    return scope


def _scope_parts(scope: Scope) -> dict[str, Scope | str]:
    items = [*scope.members.items()]
    parts: dict[str, Scope | str] = {}
    for start in range(0, len(items), MOST_MEMBERS):
        members = items[start:start + MOST_MEMBERS]
        part = Scope(scope.name)
        part.members = dict(members)
        parts[f"{members[0][0]} … {members[-1][0]} ({start + 1})"] = part
    return parts
