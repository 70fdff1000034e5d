"""Pass `add-defaults`, on request: adds the default of each attribute that a node leaves out, in functions too.

A file with all attributes is independent of changed defaults. The pass undoes `strip-defaults` for the nodes that it
changed.
"""

from __future__ import annotations

from typing import Any

from heald.api import Graph, Node, PassContext, ShapeAttr

from ..node_edits import with_nodes_edited
from .strip_defaults import UNCHANGED_TYPES


def add_defaults(graph: Graph, context: PassContext) -> Graph:
    def add_missing_defaults(node: Node) -> Node:
        entry = context.resolve(node)
        new = {} if entry is None else {
            name: _attribute_of_kernel_form(declared.type, entry.attrs[name])
            for name, declared in entry.op.attrs.items()
            if name not in node.attrs and declared.type not in UNCHANGED_TYPES}
        return node.replace(attrs=new) if new else node

    return with_nodes_edited(graph, add_missing_defaults)


def _attribute_of_kernel_form(kind: str, value: Any) -> Any:
    """An attribute as a graph has it, from its form for kernels."""
    if kind.startswith("list("):
        return tuple(_attribute_of_kernel_form(kind[5:-1], item) for item in value)
    if kind == "string" and isinstance(value, str):
        return value.encode()
    return ShapeAttr(value) if kind == "shape" and value is not None else value
