"""Pass `slices`: a StridedSlice whose ends are all ignored reads its begins in their place.

`x[i]` is written with the ends i + 1, which TensorFlow ignores: one element is taken along the axis. The nodes that
compute the ends take as long as the slice itself in a loop over elements.
"""

from __future__ import annotations

from heald.api import Graph, Input, Node, PassContext

from ..graph_view import GraphView

OPS = frozenset({"StridedSlice"})
BEGIN, END, STRIDES = 1, 2, 3  # inputs
MOST_NODES = 16  # that compute ends


def drop_unread_ends(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op in OPS for node in graph):
        return graph
    view = GraphView(graph, context)
    edits = [_with_begins_as_ends(node) for node in graph if node.op in OPS and _reads_no_end(view, node)]
    return view.with_edits(edits) if edits else graph


def _with_begins_as_ends(node: Node) -> Node:
    inputs = [*node.inputs]
    inputs[END] = inputs[BEGIN]
    return node.replace(inputs=inputs)


def _reads_no_end(view: GraphView, node: Node) -> bool:
    """True where each end is ignored, computed in the run, and has a begin: other numbers of them stay an error."""
    entry, count = view.resolve(node), _elements(view, node.inputs[STRIDES])
    begin, end = node.inputs[BEGIN], node.inputs[END]
    if entry is None or count is None or begin == end or view.is_known_tensor(end):
        return False
    if not _elements(view, begin) == _elements(view, end) == count:
        return False
    masks = entry.attrs
    ignored = masks["shrink_axis_mask"] | masks["end_mask"] | masks["new_axis_mask"] | masks["ellipsis_mask"]
    every_axis = (1 << count) - 1
    return ignored & every_axis == every_axis and _is_effectless(view, end, begin)


def _elements(view: GraphView, tensor: Input) -> int | None:
    """The number of elements of a vector."""
    shape = view.shape(tensor)
    return shape[0] if shape is not None and len(shape) == 1 else None


def _is_effectless(view: GraphView, end: Input, begin: Input) -> bool:
    """True where the nodes that compute the end change nothing, up to those that the begin needs: they may go."""
    needed = {begin.node, *(source.node for source in view.graph[begin.node].inputs)}
    stack, reached = [end.node], {end.node}
    while stack:
        node = view.graph[stack.pop()]
        entry = view.resolve(node)
        if entry is None or entry.op.stateful or node.controls or len(reached) > MOST_NODES:
            return False
        new = {source.node for source in node.inputs} - reached - needed
        reached |= new
        stack += new
    return True
