"""Pass `pads`: zeros put around images are the own padding of the convolution or the MaxPool that takes them.

Only for Pad alone in front of a node that pads nothing itself, and in height and width. What a MaxPool pads with is
less than any number: zeros are never taken either where no number is negative, since each window has one of the image.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.api import Graph, Node, PassContext

from .view import Array, View, asks_for_same_place

CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
NOT_NEGATIVE = ("Relu", "Relu6", "Sigmoid", "Softplus")


def explicit(graph: Graph, context: PassContext) -> Graph:
    view = View(graph, context)
    found = [_padding(view, node) for node in graph if node.op in (*CONVOLUTIONS, "MaxPool")]
    return view.edited(node for node in found if node is not None)


def _padding(view: View, node: Node) -> Node | None:
    """The node with the padding before it as its own."""
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
    if node.op == "MaxPool" and not _never_takes(view.graph[pad.inputs[0].node], paddings, entry.attrs["ksize"]):
        return None
    numbers = [int(n) for n in paddings.reshape(-1)]
    return node.replace(inputs=[pad.inputs[0], *node.inputs[1:]],
                        attrs={"padding": b"EXPLICIT", "explicit_paddings": numbers})


def _never_takes(source: Node, paddings: Array, taps: Sequence[int]) -> bool:
    """Whether windows of so many taps never give a zero of those around what the source gives."""
    return (source.op in NOT_NEGATIVE and len(taps) == len(paddings)
            and all(max(pads) < n for pads, n in zip(paddings, taps, strict=True)))


def _is_zeros(view: View, pad: Node) -> bool:
    if pad.op not in ("Pad", "PadV2") or view.resolve(pad) is None:
        return False
    value = view.array(pad.inputs[2]) if pad.op == "PadV2" else None
    return pad.op == "Pad" or (value is not None and value.shape == () and value == 0)
