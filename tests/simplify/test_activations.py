"""Activations: several nodes become one activation."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from builders.rewritten_graphs import INT, op_counts, optimized_graph, rewrite_and_compare

SIX, ZERO, PART, UNIT = const("six", 6), const("zero", 0), const("part", 0.25), const("one", 1)

ACTIVATIONS = {
    "Relu6 of a clip": ("Relu6", [SIX, ZERO, node("a", "Maximum", "x", "zero"), node("y", "Minimum", "a", "six")]),
    "Relu6, top first": ("Relu6", [SIX, ZERO, node("a", "Minimum", "six", "x"), node("y", "Maximum", "a", "zero")]),
    "Relu6 of a Relu": ("Relu6", [SIX, node("a", "Relu", "x"), node("y", "Minimum", "a", "six")]),
    "Relu": ("Relu", [ZERO, node("y", "Maximum", "zero", "x")]),
    "LeakyRelu": ("LeakyRelu", [PART, node("a", "Mul", "part", "x"), node("y", "Maximum", "x", "a")]),
    "SquaredDifference": ("SquaredDifference", [node("r", "Relu", "x"), node("a", "Sub", "x", "r"),
                                                node("y", "Square", "a")]),
    "Rsqrt": ("Rsqrt", [UNIT, node("e", "Exp", "x"), node("a", "Sqrt", "e"), node("y", "RealDiv", "one", "a")]),
}


@pytest.mark.parametrize("case", sorted(ACTIVATIONS))
def test_the_nodes_of_an_activation_become_one(case):
    op, nodes = ACTIVATIONS[case]
    rewritten = rewrite_and_compare([placeholder("x", (3, 5)), *nodes], "activations")
    assert rewritten["y"].op == op
    assert "a" not in rewritten


def test_a_clip_of_integers_and_one_whose_middle_is_fetched_stay():
    nodes = [placeholder("x", (3,)), SIX, ZERO, node("a", "Maximum", "x", "zero"), node("y", "Minimum", "a", "six")]
    assert op_counts(optimized_graph(nodes, "activations", fetches=("y", "a"))) == {"Relu": 1, "Relu6": 1} or op_counts(
        optimized_graph(nodes, "activations", fetches=("y", "a"))) == {"Relu": 1, "Minimum": 1}
    integers = [placeholder("x", (3,), INT), const("six", 6, np.int32), node("y", "Minimum", "x", "six", T=INT)]
    assert op_counts(optimized_graph(integers, "activations")) == {"Minimum": 1}
