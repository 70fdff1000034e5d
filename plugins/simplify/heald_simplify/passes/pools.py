"""Pass `pools`: an AvgPool moves behind the 1x1 convolution that consumes it where that leaves fewer channels.

The pool sums over places, the convolution over channels, so the two commute. So does a bias by channel, because the
mean does not count padding. Each block of Inception has such a branch.
"""

from __future__ import annotations

from heald.api import Graph, Node, PassContext

from ..affine import is_of_floats
from ..graph_view import GraphView, asks_for_same_place


def sink_average_pools(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op == "AvgPool" for node in graph):
        return graph
    view = GraphView(graph, context)
    return view.with_edits(new for node in graph if node.op == "AvgPool"
                           for new in _pool_behind_convolution(view, node))


def _pool_behind_convolution(view: GraphView, pool: Node) -> list[Node]:
    """The convolution of the pool's input, the bias, and the pool under the name of the bias; empty where they stay."""
    convolution = view.only_consumer(pool)
    shift = None if convolution is None else view.only_consumer(convolution)
    if convolution is None or shift is None or not (view.is_free(pool) and view.is_free(convolution)):
        return []
    if not (_keeps_size(view, pool) and _is_pointwise(view, convolution, pool)):
        return []
    if not _is_shift(view, shift, convolution):
        return []
    unpooled_name = view.new_name(f"{shift.name}/whole")
    return [convolution.replace(inputs=[pool.inputs[0], convolution.inputs[1]]), shift.replace(name=unpooled_name),
            pool.replace(name=shift.name, inputs=[unpooled_name])]


def _keeps_size(view: GraphView, pool: Node) -> bool:
    """True for a pool without strides. With strides, the convolution would do more work in front of it."""
    entry = view.resolve(pool)
    return entry is not None and entry.attrs["data_format"] == "NHWC" and set(entry.attrs["strides"]) == {1}


def _is_pointwise(view: GraphView, node: Node, pool: Node) -> bool:
    """True for a 1x1 convolution of the pool, without strides or padding, that has fewer filters than channels."""
    entry = view.resolve(node) if node.op == "Conv2D" and node.inputs[0].node == pool.name else None
    filters, images = view.constant(node.inputs[1]) if entry is not None else None, view.shape(pool.inputs[0])
    if entry is None or filters is None or images is None or len(filters.shape) != 4:
        return False
    height, width, depth, count = filters.shape
    attrs = entry.attrs
    return ((height, width) == (1, 1) and count < depth == images[-1] and attrs["data_format"] == "NHWC"
            and set(attrs["strides"]) == {1} and not any(attrs["explicit_paddings"]))


def _is_shift(view: GraphView, node: Node, convolution: Node) -> bool:
    """True for an addition of a constant scalar or channel vector to the convolution."""
    if node.op not in ("Add", "AddV2", "BiasAdd") or node.controls or not asks_for_same_place(node, convolution):
        return False
    entry, others = view.resolve(node), [source for source in node.inputs if source.node != convolution.name]
    vector = view.array(others[0]) if entry is not None and len(others) == 1 else None
    channels_last = entry is not None and entry.attrs.get("data_format", "NHWC") == "NHWC"
    return vector is not None and vector.ndim < 2 and channels_last and is_of_floats(view, node)
