"""Pass `pads`: a Pad with zeros is folded into the convolution or the MaxPool that consumes it.

The Pad must have one consumer, which pads nothing itself, and must pad height and width only. A MaxPool pads with the
lowest value instead of zero. The result is the same where the input is not negative and each window has a pixel of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from heald.api import Graph, Node, PassContext

from .graph_view import Array, GraphView, asks_for_same_place

CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
NOT_NEGATIVE = ("Relu", "Relu6", "Sigmoid", "Softplus")


def fold_pads(graph: Graph, context: PassContext) -> Graph:
    view = GraphView(graph, context)
    found = [_padding(view, node) for node in graph if node.op in (*CONVOLUTIONS, "MaxPool")]
    return view.edited(node for node in found if node is not None)


def _padding(view: GraphView, node: Node) -> Node | None:
    """The convolution or pool with the explicit padding of the Pad before it; None where that changes the result."""
    entry = view.resolve(node)
    if entry is None or entry.attrs["padding"] != "VALID" or entry.attrs["data_format"] not in ("NHWC", "NCHW"):
        return None
    pad = view.graph[node.inputs[0].node]
    if not _is_zeros(view, pad) or not view.is_free(pad) or view.only_consumer(pad) is None:
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
    """True where no window of a MaxPool returns a zero of the padding."""
    return (source.op in NOT_NEGATIVE and len(taps) == len(paddings)
            and all(max(pads) < n for pads, n in zip(paddings, taps, strict=True)))


def _is_zeros(view: GraphView, pad: Node) -> bool:
    if pad.op not in ("Pad", "PadV2") or view.resolve(pad) is None:
        return False
    value = view.array(pad.inputs[2]) if pad.op == "PadV2" else None
    return pad.op == "Pad" or (value is not None and value.shape == () and value == 0)
