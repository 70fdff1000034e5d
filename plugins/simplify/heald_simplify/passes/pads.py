"""Pass `pads`: a Pad with zeros is folded into the convolution or the MaxPool that consumes it.

The consumer must pad nothing itself, and the Pad must pad height and width only. A MaxPool pads with the lowest value
instead of zero. The result is the same where the input is not negative and each window has a pixel of it.
"""

from __future__ import annotations

from heald.api import Graph, Known, Match, PassContext, Pattern, Rule, rewrite

NOT_NEGATIVE = ("Relu", "Relu6", "Sigmoid", "Softplus")
_PADS = (Pattern("Pad", "x", Known("pads")), Pattern("PadV2", "x", Known("pads"), Known("zero", 0)))
_UNPADDED_ATTRS = {"padding": "VALID", "data_format": lambda order: order in ("NHWC", "NCHW")}
_PADDED = {"padding": b"EXPLICIT",
           "explicit_paddings": lambda match: [int(n) for n in match.value("pads").reshape(-1)]}


def fold_pads(graph: Graph, context: PassContext) -> Graph:
    return rewrite(graph, context, _RULES)


def _is_plane(match: Match) -> bool:
    """True for a Pad that adds to height and width only."""
    pads = match.value("pads")
    depth = match.attrs()["data_format"].index("C")
    return pads.shape == (4, 2) and pads.min() >= 0 and not pads[[0, depth]].any()


def _takes_no_zero(match: Match) -> bool:
    """True where no window of a MaxPool returns a zero of the padding."""
    taps = match.attrs()["ksize"]
    return _is_plane(match) and len(taps) == 4 and match.producer("x").op in NOT_NEGATIVE and all(
        max(pads) < tap for pads, tap in zip(match.value("pads"), taps, strict=True))


_RULES = tuple(rule for pad in _PADS for rule in (
    *(Rule(f"pad before {op}", Pattern(op, pad, "weights", attrs=_UNPADDED_ATTRS),
           Pattern(op, "x", "weights", attrs=_PADDED), _is_plane) for op in ("Conv2D", "DepthwiseConv2dNative")),
    Rule("pad before MaxPool", Pattern("MaxPool", pad, attrs=_UNPADDED_ATTRS), Pattern("MaxPool", "x", attrs=_PADDED),
         _takes_no_zero),
))
