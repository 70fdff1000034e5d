"""Colocation: nodes that are to be on one device, as one names the other, `loc:@other`, in its attribute `_class`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..contract.device import DeviceName
from ..graph.node import Node

PREFIX = b"loc:@"


def partners(node: Node) -> list[str]:
    """The nodes that this one is to be colocated with, as it says itself."""
    given = node.attrs.get("_class")
    if not isinstance(given, list | tuple):
        return []
    return [entry.removeprefix(PREFIX).decode("utf-8", "surrogateescape") for entry in given
            if isinstance(entry, bytes) and entry.startswith(PREFIX)]


def groups(nodes: Iterable[Node]) -> list[list[str]]:
    """The names of all nodes in groups, most of one node: whoever names another is with it, and with its partners."""
    above: dict[str, str] = {}  # a name to another of its group, towards the group's root

    def root(name: str) -> str:
        while (higher := above.get(name, name)) != name:
            above[name] = above.get(higher, higher)
            name = higher
        return name

    names = []
    for node in nodes:
        names.append(node.name)
        for partner in partners(node):
            if (mine := root(node.name)) != (theirs := root(partner)):
                above[mine] = theirs
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(root(name) if above else name, []).append(name)
    return list(found.values())


def merged(one: DeviceName, other: DeviceName) -> DeviceName | None:
    """The request that says what both say; None when they differ."""
    if any(a is not None and b is not None and a != b for a, b in zip(one, other, strict=True)):
        return None
    added: dict[str, Any] = {part: b for part, a, b in zip(one._fields, one, other, strict=True) if a is None}
    return one._replace(**added)


def unknown_partner(node: Node, nodes: Mapping[str, object]) -> str | None:
    """A node that this one is to be colocated with and that is not there."""
    return next((partner for partner in partners(node) if partner not in nodes), None)
