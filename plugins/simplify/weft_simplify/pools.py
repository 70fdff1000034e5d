"""Pass `pools`: the mean over windows of images, in front of a convolution of single pixels that gives fewer channels,
is taken of what that gives.

Both are sums, of places and of channels: their order does not matter, nor where a number for each channel is added,
since padding is no part of these means. (Each block of Inception has such a branch.)
"""

from __future__ import annotations

from weft.api import Graph, Node, PassContext

from .affine import is_of_floats
from .view import View, asks_for_same_place


def behind(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op == "AvgPool" for node in graph):
        return graph
    view = View(graph, context)
    return view.edited(new for node in graph if node.op == "AvgPool" for new in _behind(view, node))


def _behind(view: View, pool: Node) -> list[Node]:
    """The convolution of what the pool takes, the shift of that, and the pool under the shift's name."""
    convolution = view.only_taker(pool)
    shift = None if convolution is None else view.only_taker(convolution)
    if convolution is None or shift is None or not (view.is_free(pool) and view.is_free(convolution)):
        return []
    if not (_keeps_places(view, pool) and _is_of_pixels(view, convolution, pool)):
        return []
    if not _is_shift(view, shift, convolution):
        return []
    whole = view.new_name(f"{shift.name}/whole")
    return [convolution.replace(inputs=[pool.inputs[0], convolution.inputs[1]]), shift.replace(name=whole),
            pool.replace(name=shift.name, inputs=[whole])]


def _keeps_places(view: View, pool: Node) -> bool:
    """Whether there are as many places behind the pool as in front of it: the convolution would do more work else."""
    entry = view.resolve(pool)
    return entry is not None and entry.attrs["data_format"] == "NHWC" and set(entry.attrs["strides"]) == {1}


def _is_of_pixels(view: View, node: Node, pool: Node) -> bool:
    """Whether this is a convolution of single pixels, all of them, that gives fewer channels than the pool has."""
    entry = view.resolve(node) if node.op == "Conv2D" and node.inputs[0].node == pool.name else None
    filters, images = view.constant(node.inputs[1]) if entry is not None else None, view.shape(pool.inputs[0])
    if entry is None or filters is None or images is None or len(filters.shape) != 4:
        return False
    height, width, depth, count = filters.shape
    attrs = entry.attrs
    return ((height, width) == (1, 1) and count < depth == images[-1] and attrs["data_format"] == "NHWC"
            and set(attrs["strides"]) == {1} and not any(attrs["explicit_paddings"]))


def _is_shift(view: View, node: Node, convolution: Node) -> bool:
    """Whether this adds a number for each channel, or one for all, to the convolution, and may get another name."""
    if node.op not in ("Add", "AddV2", "BiasAdd") or node.controls or not asks_for_same_place(node, convolution):
        return False
    entry, others = view.resolve(node), [each for each in node.inputs if each.node != convolution.name]
    vector = view.array(others[0]) if entry is not None and len(others) == 1 else None
    channels_last = entry is not None and entry.attrs.get("data_format", "NHWC") == "NHWC"
    return vector is not None and vector.ndim < 2 and channels_last and is_of_floats(view, node)
