"""Passes `strip-defaults` and `add-defaults`, on request: attributes that have the default of their op.

Both preserve every result, name and edge: an op without the attribute has its default. Older readers know fewer
attributes, so `strip-defaults` makes a file readable for them; `add-defaults` makes it independent of changed defaults.
Both concern the bodies of functions, too. Nodes that do not fit their op stay, and so do attributes of the types tensor
and func. Each is idempotent, and undoes the other for nodes that the other changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.api import Graph, Node, PassContext, Resolved, ShapeAttr

_KEPT = ("tensor", "func", "list(tensor)", "list(func)")  # types of attributes that both passes leave alone


def strip_defaults(graph: Graph, context: PassContext) -> Graph:
    """The graph without attributes that have their default."""
    return _edited(graph, context, _stripped)


def add_defaults(graph: Graph, context: PassContext) -> Graph:
    """The graph with the default of each attribute that a node leaves out."""
    return _edited(graph, context, _completed)


def _edited(graph: Graph, context: PassContext, edit: Callable[[Resolved], Node]) -> Graph:
    def node(before: Node) -> Node:
        entry = context.resolve(before)
        return before if entry is None else edit(entry)

    changed = [after for before in graph if (after := node(before)) is not before]
    functions = []
    for function in graph.functions.values():
        nodes = [node(each) for each in function.nodes.values()]
        if any(after is not before for after, before in zip(nodes, function.nodes.values(), strict=True)):
            functions.append(function.replace(nodes=nodes))
    return graph.replace(nodes=changed, functions=functions or None) if changed or functions else graph


def _stripped(entry: Resolved) -> Node:
    gone = [name for name, declared in entry.op.attrs.items()
            if name in entry.node.attrs and declared.type not in _KEPT
            and repr(entry.attrs[name]) == repr(declared.default)]  # 0.0 is not -0.0, and True is not 1
    return entry.node.replace(without_attrs=gone) if gone else entry.node


def _completed(entry: Resolved) -> Node:
    new = {name: _encoded(declared.type, entry.attrs[name]) for name, declared in entry.op.attrs.items()
           if name not in entry.node.attrs and declared.type not in _KEPT}
    return entry.node.replace(attrs=new) if new else entry.node


def _encoded(kind: str, value: Any) -> Any:
    """An attribute as a graph has it, from its form for kernels."""
    if kind.startswith("list("):
        return tuple(_encoded(kind[5:-1], item) for item in value)
    if kind == "string" and isinstance(value, str):
        return value.encode()
    return ShapeAttr(value) if kind == "shape" and value is not None else value
