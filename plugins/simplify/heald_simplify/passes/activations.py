"""Pass `activations`: the nodes that exporters write for an activation become one node, as other passes expect it."""

from __future__ import annotations

from typing import Any

from heald.api import Graph, Known, Match, PassContext, Pattern, Rule, dtypes, rewrite

_FLOATS = {"T": lambda dtype: dtype in (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)}


def fuse_activations(graph: Graph, context: PassContext) -> Graph:
    return rewrite(graph, context, _RULES)


def _above(x: Any) -> Pattern:
    return Pattern("Maximum", x, Known("zero", 0), attrs=_FLOATS, commutes=True)


def _below(x: Any) -> Pattern:
    return Pattern("Minimum", x, Known("six", 6), attrs=_FLOATS, commutes=True)


def _is_slope(value: Any) -> bool:
    return value.shape == () and bool(0 < value < 1)


def _slope(match: Match) -> float:
    return float(match.value("slope"))


_RULES = (
    Rule("clip to 0..6", _below(_above("x")), Pattern("Relu6", "x")),
    Rule("clip to 0..6, the top first", _above(_below("x")), Pattern("Relu6", "x")),
    Rule("clip of a Relu", _below(Pattern("Relu", "x")), Pattern("Relu6", "x")),
    Rule("maximum with 0", _above("x"), Pattern("Relu", "x")),
    Rule("leaky", Pattern("Maximum", Pattern("Mul", Known("slope", _is_slope), "x", commutes=True), "x", attrs=_FLOATS,
                          commutes=True), Pattern("LeakyRelu", "x", attrs={"alpha": _slope})),
    Rule("square of a difference", Pattern("Square", Pattern("Sub", "a", "b"), attrs=_FLOATS),
         Pattern("SquaredDifference", "a", "b")),
    Rule("reciprocal of a root", Pattern(("Reciprocal", "Inv"), Pattern("Sqrt", "x"), attrs=_FLOATS),
         Pattern("Rsqrt", "x")),
    Rule("1 through a root", Pattern("RealDiv", Known("one", 1), Pattern("Sqrt", "x"), attrs=_FLOATS),
         Pattern("Rsqrt", "x")),
)
