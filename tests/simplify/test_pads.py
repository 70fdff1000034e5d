"""Pads: zeros around images become the padding of the convolution or pool behind them."""

from __future__ import annotations

import pytest
from builders.graphs import FLOAT, const, node, placeholder
from builders.rewritten_graphs import INT, conv, numbers, op_counts, rewrite_and_compare, vector
from heald.graphs.graph.graph import Node


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize(("paddings", "is_taken"), [
    ([[0, 0], [1, 0], [2, 1], [0, 0]], {"NHWC"}), ([[0, 0], [0, 0], [2, 1], [1, 3]], {"NCHW"}),
    ([[1, 0], [1, 1], [1, 1], [0, 0]], set()),
])
def test_zeros_around_images_are_the_convolution_s_own_padding(data_format, op, paddings, is_taken):
    nodes = [placeholder("x", (2, 5, 5, 5)), vector("p", paddings), node("pad", "Pad", "x", "p", Tpaddings=INT)]
    depth = 5 + sum(paddings[data_format.index("C")])
    nodes += [const("w", numbers(2, 3, depth, 2)), conv("y", "pad", "w", op, data_format, stride=2)]
    assert op_counts(rewrite_and_compare(nodes, "pads")) == {op: 1} | ({} if data_format in is_taken else {"Pad": 1})


@pytest.mark.parametrize(("change", "is_taken"), [
    ({"op": "PadV2", "value": 0.0}, True), ({"op": "PadV2", "value": 1.0}, False), ({"padding": "SAME"}, False),
    ({"fetches": ("y", "pad")}, False), ({"device": "EXAMPLE:0"}, False), ({"controls": ["before"]}, False),
])
def test_a_pad_that_does_something_else_stays(change, is_taken):
    value = [const("value", change["value"])] if "value" in change else []
    nodes = [placeholder("x", (1, 5, 5, 1)), vector("p", [[0, 0], [1, 1], [1, 1], [0, 0]]), *value,
             node("before", "CheckNumerics", "x", message=""),
             Node("pad", change.get("op", "Pad"), ["x", "p", *(graph_node.name for graph_node in value)],
                  controls=change.get("controls", []), device=change.get("device", ""),
                  attrs={"T": FLOAT, "Tpaddings": INT}),
             const("w", numbers(3, 3, 1, 2)), conv("y", "pad", "w", padding=change.get("padding", "VALID"))]
    rewritten = rewrite_and_compare(nodes, "pads", fetches=change.get("fetches", ("y",)))
    assert ("pad" not in rewritten) == is_taken


@pytest.mark.parametrize(("op", "paddings", "taps", "is_taken"), [
    ("Relu", [[1, 1], [2, 1]], 3, True), ("Relu6", [[0, 1], [0, 0]], 2, True), ("Neg", [[1, 1], [1, 1]], 3, False),
    ("Relu", [[2, 0], [0, 0]], 2, False),
])
def test_zeros_around_nonnegative_images_become_the_padding_of_max_pooling(op, paddings, taps, is_taken):
    window = [1, taps, taps, 1]
    nodes = [placeholder("x", (2, 6, 5, 3)), node("image", op, "x"), vector("p", [[0, 0], *paddings, [0, 0]]),
             node("pad", "Pad", "image", "p", Tpaddings=INT),
             node("y", "MaxPool", "pad", ksize=window, strides=window, padding="VALID")]
    assert op_counts(rewrite_and_compare(nodes, "pads")) == {op: 1, "MaxPool": 1} | ({} if is_taken else {"Pad": 1})
