"""Colocation: groups of nodes that share a device. One names the other, `loc:@other`, in its attribute `_class`, or
takes a resource from it: a variable and all its users are on one device."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ...runtime.contract.device import DeviceName
from ...runtime.contract.structural import CONTROL_FLOW
from ...runtime.values.dtypes import resource
from ..graph.graph import Graph
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


def with_successors_as_partners(before: Graph, after: Graph) -> Graph:
    """Return the graph after a pass, with colocation that names no node which the pass removed.

    The successor of a removed node takes its part: the node that its consumers read instead, or the one that computes
    its work with theirs. A removed node's own partners and request stay in force. TensorFlow places before its passes.
    """
    nodes = [node for node in after if any(name in before and name not in after for name in colocation_partners(node))]
    if not nodes:
        return after
    successors = _Successors(before, after)
    return after.replace(nodes=[successors.with_partners(node) for node in nodes])


class _Successors:
    """The nodes after a pass that took the place of nodes before it."""

    def __init__(self, before: Graph, after: Graph) -> None:
        self._before, self._after = before, after
        self._consumers: dict[str, list[tuple[Node, int]]] = {}
        for node in before:
            for index, source in enumerate(node.inputs):
                self._consumers.setdefault(source.node, []).append((node, index))
        self._representatives: dict[str, str] = {}  # removed node without a successor -> the first that named it

    def with_partners(self, node: Node) -> Node:
        """Return the node with the remaining members of its group as partners, and with their request."""
        partners: dict[str, None] = {}
        device, left, seen = node.device, colocation_partners(node), {node.name}
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._after or name not in self._before:
                partners[name] = None
                continue
            removed = self._before[name]
            device = device or removed.device
            successor = self.successor(name) or self._representatives.setdefault(name, node.name)
            left += [*colocation_partners(removed), successor]
        groups = tuple(PREFIX + name.encode("utf-8", "surrogateescape") for name in partners)
        node = node.replace(device=device)
        return node.replace(attrs={ATTRIBUTE: groups}) if groups else node.replace(without_attrs=[ATTRIBUTE])

    def successor(self, removed: str) -> str | None:
        """Return the node in the place of a removed one: the new source of a consumer, or a consumer that changed."""
        seen, left = {removed}, [removed]
        while left:
            name = left.pop()
            for consumer, index in self._consumers.get(name, ()):
                new = self._after.nodes.get(consumer.name)
                if new is None:
                    left += [consumer.name] if consumer.name not in seen else []
                    seen.add(consumer.name)
                elif new.op == consumer.op and len(new.inputs) == len(consumer.inputs):
                    return new.inputs[index].node
                else:
                    return new.name
        return None


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
