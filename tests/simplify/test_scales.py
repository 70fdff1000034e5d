"""Scales: factors and shifts go into the weights of a layer, or become one factor and one shift."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from builders.rewritten_graphs import (
    CHANNELS,
    IMAGE_SHAPES,
    LAYERS,
    PASSES,
    bias_add,
    conv,
    numbers,
    op_counts,
    optimized_graph,
    rewrite_and_compare,
    scaling_nodes,
    scaling_steps,
    session_with_passes,
    transposed_conv,
    vector,
)
from heald.runtime.values import dtypes


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("data_format", IMAGE_SHAPES)
def test_scalings_of_a_layers_output_go_into_its_weights(layer, data_format):
    channels = CHANNELS[layer]
    nodes = [placeholder("x", IMAGE_SHAPES[data_format]), *LAYERS[layer](data_format, "VALID"),
             *bias_add("s0", "l", numbers(channels, seed=9), data_format)]
    for i, step in enumerate(scaling_steps(data_format, channels)):
        nodes += scaling_nodes(f"s{i + 1}", f"s{i}", *step)
    rewritten = rewrite_and_compare([*nodes, node("y", "Relu", "s8")], "scales")
    assert op_counts(rewritten) == {rewritten["l"].op: 1, "BiasAdd": 1, "Relu": 1}


@pytest.mark.parametrize("transposed", [False, True])
def test_scalings_of_a_product_go_into_its_matrix(transposed):
    weights = numbers(3, 4)
    nodes = [placeholder("x", (None, 3)), const("w", weights.T if transposed else weights),
             node("l", "MatMul", "x", "w", transpose_b=transposed), *bias_add("b", "l", [1, 2, 3, 4]),
             *scaling_nodes("y", "b", "Mul", (4,), 1)]
    assert op_counts(rewrite_and_compare(nodes, "scales")) == {"MatMul": 1, "BiasAdd": 1}


def test_a_layer_that_is_only_multiplied_gets_the_name_of_the_multiplication():
    nodes = [placeholder("x", (1, 3)), const("w", numbers(3, 4)), node("l", "MatMul", "x", "w"),
             *scaling_nodes("s", "l", "Mul", (4,), 1), node("y", "Relu", "s")]
    rewritten = rewrite_and_compare(nodes, "scales")
    assert [(graph_node.name, graph_node.op) for graph_node in rewritten] == [
        ("x", "Placeholder"), ("w", "Const"), ("s", "MatMul"), ("y", "Relu")]


@pytest.mark.parametrize("fetches", [("y",), ("y", "n")])
def test_the_last_of_a_chain_may_be_known(fetches):
    nodes = [placeholder("x", (1, 4, 4, 3)), *LAYERS["Conv2D"]("NHWC", "VALID"),
             *scaling_nodes("s", "l", "Mul", (4,), 1), *scaling_nodes("n", "s", "AddV2", (4,), 1),
             node("before", "Abs", "x").replace(controls=["n"]), node("y", "Relu", "n"), node("z", "Relu", "n")]
    assert op_counts(rewrite_and_compare(nodes, "scales", fetches=(*fetches, "z", "before")))["BiasAdd"] == 1


@pytest.mark.parametrize("values", [np.float32([[[1, 2, 3, 4]]] * 3), np.float32([[[[[2]]]]]), np.ones((2, 1, 1, 1))])
def test_factors_that_differ_from_place_to_place_stay(values):
    nodes = [placeholder("x", (1, 4, 4, 3)), *LAYERS["Conv2D"]("NHWC", "VALID"), const("c", values),
             node("y", "Mul", "l", "c")]
    assert op_counts(rewrite_and_compare(nodes, "scales")) == {"Conv2D": 1, "Mul": 1}


def test_a_transposed_convolution_with_groups_stays():
    nodes = [placeholder("x", (1, 4, 4, 4)), const("w", numbers(2, 2, 1, 4)), vector("sizes", [1, 5, 5, 2]),
             transposed_conv("l", "sizes", "w", "x"), *scaling_nodes("s", "l", "AddV2", (), 1),
             *scaling_nodes("y", "s", "Mul", (), 1)]
    assert op_counts(rewrite_and_compare(nodes, "scales")) == {"Conv2DBackpropInput": 1, "AddV2": 1, "Mul": 1}


def test_one_channel_that_is_broadcast_to_several_stays():
    nodes = [placeholder("x", (1, 4, 4, 3)), const("w", numbers(1, 1, 3, 1)), conv("l", "x", "w"),
             *scaling_nodes("y", "l", "Mul", (4,), 1)]
    assert op_counts(rewrite_and_compare(nodes, "scales")) == {"Conv2D": 1, "Mul": 1}


@pytest.mark.parametrize("factor", [np.inf, np.nan, 3e38])
def test_weights_that_would_overflow_stay(factor):
    nodes = [placeholder("x", (1, 4, 4, 3)), *LAYERS["Conv2D"]("NHWC", "VALID"), const("c", factor),
             node("y", "Mul", "l", "c")]
    assert op_counts(optimized_graph(nodes, "scales")) == {"Conv2D": 1, "Mul": 1}


@pytest.mark.parametrize(("weights", "factor", "left"), [
    ((2.5, -1.5, 0.1), 100.0, 0), ((1e-40, -2.0, 1e30), 1e8, 0), ((1e-3, -1e31, 1e-9), 1e8, 1),
    ((0.0, np.nan, 1.0), 0.5, 1),
])
def test_the_largest_weight_decides_on_overflow(weights, factor, left):
    nodes = [placeholder("x", (1, 4, 4, 3)), const("w", np.reshape(weights, (1, 1, 3, 1))), conv("l", "x", "w"),
             const("c", factor), node("y", "Mul", "l", "c")]
    assert op_counts(optimized_graph(nodes, "scales")) == {"Conv2D": 1, **({"Mul": 1} if left else {})}


def test_halves_that_would_lose_digits_stay():
    half, few = dtypes.float16, []
    for factor in (0.5, 1e-4):
        nodes = [placeholder("x", (1, 4, 4, 3), half), const("w", numbers(1, 1, 3, 2), np.float16),
                 conv("l", "x", "w", T=half), const("c", factor, np.float16), node("y", "Mul", "l", "c", T=half)]
        few.append(op_counts(rewrite_and_compare(nodes, "scales", tolerance=2e-3)))
    assert few == [{"Conv2D": 1}, {"Conv2D": 1, "Mul": 1}]


def test_scalings_that_follow_each_other_become_one_factor_and_one_shift():
    nodes = [placeholder("x", (2, 4, 5, 3))]
    for i, step in enumerate(scaling_steps("NHWC", 3)):
        nodes += scaling_nodes(f"s{i + 1}", f"s{i}" if i else "x", *step)
    rewritten = rewrite_and_compare([*nodes, node("y", "Relu", "s8")], "scales")
    assert op_counts(rewritten) == {"Mul": 1, "AddV2": 1, "Relu": 1}
    assert (rewritten["s1"].op, rewritten["s8"].op) == ("Mul", "AddV2")


@pytest.mark.parametrize("chain", [
    [("Mul", (3,), 1), ("AddV2", (3,), 1)],
    [("Mul", (4, 1), 1), ("Mul", (1, 3), 1)],  # the product is larger than either
    [("Mul", (2,), 1), ("Mul", (3,), 1)],  # that cannot be
])
def test_scalings_that_gain_nothing_stay(chain):
    nodes = [placeholder("x", (4, 1))]
    for i, step in enumerate(chain):
        nodes += scaling_nodes(f"s{i + 1}", f"s{i}" if i else "x", *step)
    rewritten = optimized_graph([*nodes, node("y", "Relu", "s2")], "scales")
    assert [graph_node.name for graph_node in rewritten if graph_node.op != "Const"] == ["x", "s1", "s2", "y"]


def test_a_scaling_within_a_chain_with_other_readers_keeps_its_output():
    nodes = [placeholder("x", (4, 3)), *scaling_nodes("a", "x", "Mul", (3,), 1),
             *scaling_nodes("b", "a", "Mul", (3,), 0), *scaling_nodes("c", "b", "Mul", (), 1),
             node("y", "Relu", "c"), node("z", "Neg", "a")]
    assert op_counts(rewrite_and_compare(nodes, "scales", fetches=("y", "z")))["Mul"] == 2
    assert op_counts(rewrite_and_compare(nodes, "scales", fetches=("y", "b")))["Mul"] == 2
    assert op_counts(rewrite_and_compare(nodes, "scales"))["Mul"] == 1
    assert session_with_passes(nodes, *PASSES).run("y", {"b": [[1, 2, 3]]}).shape == (1, 3)


@pytest.mark.parametrize("data_format", IMAGE_SHAPES)
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize(("padding", "biased", "left"), [
    ("VALID", True, {}), ("VALID", False, {"Sub": 1}), ("SAME", True, {"Sub": 1}), ("SAME", False, {"Sub": 1}),
])
def test_scalings_of_the_images_go_into_the_first_weights(data_format, op, padding, biased, left):
    wide = (3,) if data_format == "NHWC" else (3, 1, 1)
    behind = bias_add("b", "l", numbers(CHANNELS[op], seed=9), data_format) if biased else []
    nodes = [placeholder("x", IMAGE_SHAPES[data_format]), *scaling_nodes("mean", "x", "Sub", wide, 1),
             *scaling_nodes("by", "mean", "RealDiv", wide, 1), *LAYERS[op](data_format, padding)]
    nodes = [graph_node.replace(inputs=["by", "w"]) if graph_node.name == "l" else graph_node for graph_node in nodes]
    rewritten = rewrite_and_compare([*nodes, *behind, node("y", "Relu", "b" if biased else "l")], "scales")
    assert op_counts(rewritten) == {op: 1, "Relu": 1} | ({"BiasAdd": 1} if biased else {}) | left


@pytest.mark.parametrize(("shape", "constant"), [
    ((2, 4, 4, 1), (3,)), ((4, 4, 3), (1, 1, 1, 3)), ((2, 4, 4, 3), (2, 1, 1, 1)), (None, (3,)),
    ((2, 4, 4, None), (3,)),
])
def test_images_that_get_their_shape_by_scaling_are_scaled(shape, constant):
    nodes = [placeholder("x", shape), *scaling_nodes("s", "x", "Mul", constant, 1), const("w", numbers(2, 2, 3, 4)),
             conv("y", "s", "w")]
    feed = {"x": numbers(*(3 if length is None else length for length in shape or (2, 4, 4, 3)))}
    assert op_counts(rewrite_and_compare(nodes, "scales", feed=feed)) == {"Conv2D": 1, "Mul": 1}


def test_one_factor_for_all_images_suits_groups_and_shapes_that_are_not_known():
    nodes = [placeholder("x", None), *scaling_nodes("s", "x", "Mul", (), 0), const("w", numbers(2, 2, 1, 6)),
             conv("y", "s", "w")]
    assert op_counts(rewrite_and_compare(nodes, "scales", feed={"x": numbers(2, 4, 4, 3)})) == {"Conv2D": 1}


def before_relu(data_format, factor, shift, layer="Conv2D", padding="SAME"):
    """A factor and a shift for each channel, a Relu, and a layer."""
    shape = (-1,) if data_format == "NHWC" else (1, -1, 1, 1)
    weights, layer_node = LAYERS[layer](data_format, padding)
    return [placeholder("x", IMAGE_SHAPES[data_format]), const("f", np.float32(factor).reshape(shape)),
            const("s", np.float32(shift).reshape(shape)), node("m", "Mul", "x", "f"), node("a", "AddV2", "m", "s"),
            node("r", "Relu", "a"), weights, layer_node.replace(inputs=["r", "w"]), node("y", "Abs", "l")]


@pytest.mark.parametrize("data_format", IMAGE_SHAPES)
@pytest.mark.parametrize("layer", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_positive_factors_before_a_relu_go_into_the_layer_behind_it(data_format, layer, padding):
    nodes = before_relu(data_format, [0.5, 2, 3], [1, -1, 0.25], layer, padding)
    assert op_counts(rewrite_and_compare(nodes, "scales")) == {"AddV2": 1, "Relu": 1, layer: 1, "Abs": 1}


@pytest.mark.parametrize("factor", [
    [1, -1, 1], [1, 0, 1], [1, 1e-5, 1], [1, np.inf, 1], [1, np.nan, 1], [-1, -2, -3]])
def test_factors_that_a_relu_does_not_pass_on_stay(factor):
    nodes = before_relu("NHWC", factor, [1, -1, 0.25])
    assert op_counts(optimized_graph(nodes, "scales"))["Mul"] == 1


@pytest.mark.parametrize("fetches", [("y", "a"), ("y", "r"), ("y", "m")])
def test_factors_stay_before_a_relu_with_other_consumers(fetches):
    nodes = before_relu("NHWC", [0.5, 2, 3], [1, -1, 0.25])
    assert op_counts(rewrite_and_compare(nodes, "scales", fetches=fetches))["Mul"] == 1


def test_factors_stay_before_two_layers_and_before_other_activations():
    nodes = before_relu("NHWC", [0.5, 2, 3], [1, -1, 0.25])
    other = [*nodes, const("v", numbers(2, 2, 3, 4)), conv("k", "r", "v")]
    assert op_counts(rewrite_and_compare(other, "scales", fetches=("y", "k")))["Mul"] == 1
    relu6 = [node("r", "Relu6", "a") if old.name == "r" else old for old in nodes]
    assert op_counts(rewrite_and_compare(relu6, "scales"))["Mul"] == 1


def test_an_infinite_shift_before_a_relu_stays():
    nodes = before_relu("NHWC", [0.5, 2, 3], [1, np.inf, 0.25])
    assert op_counts(optimized_graph(nodes, "scales"))["Mul"] == 1
