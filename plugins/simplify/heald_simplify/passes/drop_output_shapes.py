"""Pass `drop-output-shapes`, on request: no node states `_output_shapes`, in functions too.

The pass is TFG's `tfg-drop-unregistered-output-shapes`. `output_shapes`, which If, Case and While declare, stays.
Attributes of functions and of their arguments stay, too. The pass `shape-inference` writes the attribute anew.
"""

from __future__ import annotations

from heald.api import Graph, Node, PassContext

from ..node_edits import with_nodes_edited

_SHAPES = "_output_shapes"


def drop_output_shapes(graph: Graph, context: PassContext) -> Graph:
    def drop_shapes(node: Node) -> Node:
        if _SHAPES not in node.attrs:
            return node
        entry = context.resolve(node)
        declares = entry is not None and _SHAPES in entry.op.attrs
        return node if declares else node.replace(without_attrs=(_SHAPES,))

    return with_nodes_edited(graph, drop_shapes)
