"""State names: the nodes of a graph that hold one variable or table."""

from __future__ import annotations

from typing import Any

from heald.api import Graph, Node

from .freeze import ASSIGN_OPS, REFERENCE_OPS

TABLES = frozenset({"AnonymousHashTable", "HashTable", "HashTableV2", "MutableHashTableOfTensorsV2",
                    "MutableHashTableV2"})
STATE_HOLDERS = TABLES | ASSIGN_OPS.keys()  # ops whose nodes hold state


def state_names(graph: Graph) -> dict[str, frozenset[str]]:
    """Return, by each node that holds a variable or table, all nodes that need this state.

    These are the nodes of equal container and shared name, or of equal name, and of a reference variable the handle
    that the pass `references` makes.
    """
    names: dict[tuple[Any, Any], set[str]] = {}
    holders = [node for node in graph if node.op in STATE_HOLDERS]
    for node in holders:
        names.setdefault(_owner(node), set()).update(
            (node.name, f"{node.name}/handle") if node.op in REFERENCE_OPS else (node.name,))
    return {node.name: frozenset(names[_owner(node)]) for node in holders}


def _owner(holder: Node) -> tuple[Any, Any]:
    return holder.attrs.get("container") or b"", holder.attrs.get("shared_name") or holder.name.encode()
