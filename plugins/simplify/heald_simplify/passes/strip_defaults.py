"""Pass `strip-defaults`, on request: removes attributes that have the default of their op, in functions too.

Older readers know fewer attributes, so the pass makes a file readable for them. Nodes that do not fit their op stay,
and so do attributes of the types tensor and func.
"""

from __future__ import annotations

from typing import Any

from heald.api import Graph, Node, PassContext, wire

from ..node_edits import with_nodes_edited

# types of attributes that stay, here and in add-defaults
UNCHANGED_TYPES = ("tensor", "func", "list(tensor)", "list(func)")


def strip_defaults(graph: Graph, context: PassContext) -> Graph:
    def drop_defaults(node: Node) -> Node:
        entry = context.resolve(node)
        default_attributes = [] if entry is None else [
            name for name, declared in entry.op.attrs.items() if name in node.attrs
            and declared.type not in UNCHANGED_TYPES
            # 0.0 is not -0.0, and True is not 1
            and repr(entry.attrs[name]) == repr(_default_in_file(declared.default))]
        return node.replace(without_attrs=default_attributes) if default_attributes else node

    return with_nodes_edited(graph, drop_defaults)


def _default_in_file(default: Any) -> Any:
    """A default as an attribute in a file has it: numbers are of 32 bits there."""
    if isinstance(default, tuple | list):
        return tuple(map(_default_in_file, default))
    return wire.as_float32(default) if isinstance(default, float) else default
