"""Colocation: groups of nodes that share a device. One names the other, `loc:@other`, in its attribute `_class`, or
takes a resource from it: a variable and all its users are on one device."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ...runtime.contract.device import DeviceName
from ...runtime.contract.structural import CONTROL_FLOW
from ...runtime.values.dtypes import resource
from ..graph.node import Node
from ..graph.traversal import DisjointSets
from .resolve import Resolved

ATTRIBUTE = "_class"
PREFIX = b"loc:@"


def colocation_partners(node: Node) -> list[str]:
    """Return the nodes that this node names as colocated with itself."""
    class_attribute = node.attrs.get(ATTRIBUTE)
    if not isinstance(class_attribute, list | tuple):
        return []
    return [entry.removeprefix(PREFIX).decode("utf-8", "surrogateescape") for entry in class_attribute
            if isinstance(entry, bytes) and entry.startswith(PREFIX)]


def without_outside_colocation(nodes: Collection[Node]) -> list[Node]:
    """Return the nodes, without colocation with partners outside of `nodes`."""
    names = {node.name for node in nodes}
    return [node if names.issuperset(colocation_partners(node)) else _with_partners_among(node, names)
            for node in nodes]


def _with_partners_among(node: Node, names: Collection[str]) -> Node:
    remaining = [PREFIX + name.encode("utf-8", "surrogateescape")
                 for name in colocation_partners(node) if name in names]
    return node.replace(attrs={ATTRIBUTE: remaining}) if remaining else node.replace(without_attrs=[ATTRIBUTE])


def colocation_groups(nodes: Iterable[Node], edges: Iterable[tuple[str, str]] = ()) -> list[list[str]]:
    """Partition all node names into colocation groups, most of them of one node.

    A node is in the group of each node that it names or that an edge connects it with, and of the partners of these.
    """
    sets = DisjointSets()
    names = []
    for node in nodes:
        names.append(node.name)
        for partner in colocation_partners(node):
            sets.join(node.name, partner)
    for one, other in edges:
        sets.join(one, other)
    names_by_root: dict[str, list[str]] = {}
    for name in names:
        names_by_root.setdefault(sets.root(name), []).append(name)
    return list(names_by_root.values())


def resource_edges(entries: Iterable[Resolved]) -> Iterator[tuple[str, str]]:
    """Yield each node that uses a resource, with the node that gives it. The functions of a call are placed node by
    node, so a call uses none."""
    for entry in entries:
        if entry.op.name not in CONTROL_FLOW:
            for (source, _), tensor in zip(entry.inputs, entry.input_tensors, strict=True):
                if tensor.dtype is resource:
                    yield entry.node.name, source


def common_request(one: DeviceName, other: DeviceName) -> DeviceName | None:
    """Return the device request that both requests imply, or None when they contradict each other."""
    if any(a is not None and b is not None and a != b for a, b in zip(one, other, strict=True)):
        return None
    added: dict[str, Any] = {part: b for part, a, b in zip(one._fields, one, other, strict=True) if a is None}
    return one._replace(**added)


def missing_partner(node: Node, nodes: Mapping[str, object]) -> str | None:
    """Return a node that this node names for colocation and that is not in the graph, else None."""
    return next((partner for partner in colocation_partners(node) if partner not in nodes), None)
