"""Pass `pads`: zeros put around the images of a convolution are the convolution's own padding.

Only for Pad alone in front of a Conv2D or DepthwiseConv2dNative that pads nothing itself, and in height and width.
"""

from __future__ import annotations

from weft.api import Graph, Node, PassContext

from .view import View, asks_for_same_place


def explicit(graph: Graph, context: PassContext) -> Graph:
    view = View(graph, context)
    found = [_padding(view, node) for node in graph if node.op in ("Conv2D", "DepthwiseConv2dNative")]
    return view.edited(node for node in found if node is not None)


def _padding(view: View, node: Node) -> Node | None:
    """The convolution with the padding before it as its own."""
    entry = view.resolve(node)
    if entry is None or entry.attrs["padding"] != "VALID" or entry.attrs["data_format"] not in ("NHWC", "NCHW"):
        return None
    pad = view.graph[node.inputs[0].node]
    if not _is_zeros(view, pad) or not view.is_free(pad) or view.only_taker(pad) is None:
        return None
    paddings = view.array(pad.inputs[1])
    if paddings is None or paddings.shape != (4, 2) or not asks_for_same_place(pad, node):
        return None
    batch, depth = 0, entry.attrs["data_format"].index("C")
    if paddings.min() < 0 or paddings[[batch, depth]].any():
        return None
    numbers = [int(n) for n in paddings.reshape(-1)]
    return node.replace(inputs=[pad.inputs[0], *node.inputs[1:]],
                        attrs={"padding": b"EXPLICIT", "explicit_paddings": numbers})


def _is_zeros(view: View, pad: Node) -> bool:
    if pad.op not in ("Pad", "PadV2") or view.resolve(pad) is None:
        return False
    value = view.array(pad.inputs[2]) if pad.op == "PadV2" else None
    return pad.op == "Pad" or (value is not None and value.shape == () and value == 0)
