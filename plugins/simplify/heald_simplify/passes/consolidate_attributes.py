"""Pass `consolidate-attributes`, on request: a node states the shapes of its outputs once, as TFG's consolidation does.

If, Case and While have them in `output_shapes`, every node may have them in `_output_shapes`. A node with both
gets their combination twice: [2, ?] and [?, 3] become [2, 3]. A list with a wrong number of shapes stays, and so do
shapes that contradict each other or have a size below -1.
"""

from __future__ import annotations

from heald.api import Graph, Node, PassContext, ShapeAttr, merge_shapes

from ..node_edits import with_nodes_edited

_ANY, _OWN = "_output_shapes", "output_shapes"


def consolidate_attributes(graph: Graph, context: PassContext) -> Graph:
    def merge_shape_attributes(node: Node) -> Node:
        if _ANY not in node.attrs or not node.attrs.get(_OWN):
            return node
        entry = context.resolve(node)
        both = [node.attrs[name] for name in (_ANY, _OWN)]
        if entry is None or any(not isinstance(shapes, tuple) or len(shapes) != len(entry.output_tensors)
                                for shapes in both) or _OWN not in entry.op.attrs:
            return node
        if any(size is not None and size < 0 for shape in both[0] if isinstance(shape, ShapeAttr)
               for size in shape):
            return node  # a note may have sizes below -1, and the op's own attribute may not
        try:
            merged = tuple(map(merge_shapes, *both))
        except ValueError:
            return node
        shapes = tuple(None if shape is None else ShapeAttr(shape) for shape in merged)
        return node if both == [shapes, shapes] else node.replace(attrs={_ANY: shapes, _OWN: shapes})

    return with_nodes_edited(graph, merge_shape_attributes)
