"""The pass `remapper`: layers become fused ops that compute the same."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.functions import GELUS
from builders.graphs import const, graph, node, placeholder
from builders.random_layers import random_layers
from builders.rewritten_graphs import batch_norm, bias_add, conv, numbers
from harness.shared_runtimes import shared_runtime
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes
from hypothesis import given
from hypothesis import strategies as st

PLAIN = {"passes": {"disable": [name for name, entry in runtime().host.registries.passes.items()]}}
MATRIX, IMAGE = placeholder("x", (3, 4)), placeholder("x", (1, 5, 5, 4))
PRODUCT = [const("w", numbers(4, 4)), node("l", "MatMul", "x", "w")]
CONVOLUTION = [const("w", numbers(3, 3, 4, 4)), conv("l", "x", "w", padding="SAME")]
DEPTHWISE = [const("w", numbers(3, 3, 4, 2)), conv("l", "x", "w", "DepthwiseConv2dNative", padding="SAME")]
BIAS = bias_add("b", "l", numbers(4, seed=1))


def remapped(before, *kept):
    *_, (_, after), (_, again) = run_requested_passes(before, ["remapper", "remapper"], ["x", *kept], runtime())
    assert again is after
    return after


def remap_and_compare(nodes, fetches=("y",), x=None):
    """The graph after the pass; its results are those of the graph before it."""
    before = graph(*nodes)
    after = remapped(before, *fetches)
    if x is None:
        x = numbers(*nodes[0].attrs["shape"], dtype=nodes[0].attrs["dtype"].numpy)
    results = []
    for tested_graph in (before, after):
        with heald.Session(tested_graph, shared_runtime(PLAIN)) as session:
            results.append(session.run(list(fetches), {"x": x}))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)
    return after


def fused_ops(node):
    return tuple(name.decode() if isinstance(name, bytes) else name for name in node.attrs["fused_ops"])


CASES = {
    "product": ("_FusedMatMul", [MATRIX, *PRODUCT, *BIAS]),
    "convolution": ("_FusedConv2D", [IMAGE, *CONVOLUTION, *BIAS]),
    "depthwise": ("_FusedDepthwiseConv2dNative", [IMAGE, *DEPTHWISE, *bias_add("b", "l", numbers(8, seed=1))]),
}


@pytest.mark.parametrize("activation", ["", "Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"])
@pytest.mark.parametrize("case", CASES)
def test_a_layer_with_its_bias_and_activation_is_one_node(case, activation):
    op, nodes = CASES[case]
    after = remap_and_compare([*nodes, node("y", activation or "Identity", "b", **(
        {"alpha": np.float32(0.3)} if activation == "LeakyRelu" else {}))])
    is_fused = activation in ("Relu", "Relu6", "Elu", "LeakyRelu") or (case == "product" and activation != "")
    assert after["y" if is_fused else "b"].op == op
    assert fused_ops(after["y" if is_fused else "b"]) == ("BiasAdd", activation)[:1 + is_fused]
    assert "l" not in after


@pytest.mark.parametrize("case", ["convolution", "depthwise"])
@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV3"])
def test_a_batch_normalisation_behind_a_convolution_is_fused_with_the_relu(case, op):
    _, (x, weights, layer, *_) = CASES[case]
    nodes = [x, weights, layer, *batch_norm("n", "l", 4 if case == "convolution" else 8, op), node("y", "Relu", "n")]
    after = remap_and_compare(nodes)
    assert fused_ops(after["y"]) == ("FusedBatchNorm", "Relu")
    assert after["y"].attrs["epsilon"] == np.float32(1e-3)


def test_a_batch_normalisation_whose_statistics_are_read_stays():
    nodes = [IMAGE, *CONVOLUTION, *batch_norm("n", "l", 4), node("y", "Relu", "n"), node("m", "Neg", "n:1")]
    assert {n.op for n in remap_and_compare(nodes, ("y", "m"))} >= {"Conv2D", "FusedBatchNormV3", "Relu"}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("has_side_input", [False, True])
def test_a_batch_normalisation_with_a_relu_is_one_node(training, has_side_input):
    sums = [node("s", "AddV2", "x", "n")] if has_side_input else []
    after = remap_and_compare([IMAGE, *batch_norm("n", "x", 4, is_training=training), *sums,
                               node("y", "Relu", "s" if sums else "n")])
    assert after["y"].op == "_FusedBatchNormEx"
    assert after["y"].attrs["num_side_inputs"] == len(sums)


def test_the_approximate_gelu_behind_a_product_is_one_node():
    gelu = [each.replace(inputs=["b" if str(i) == "v" else i for i in each.inputs]) for each in GELUS["tanh"]]
    after = remap_and_compare([MATRIX, *PRODUCT, *BIAS, *gelu], ("g",))
    assert fused_ops(after["g"]) == ("BiasAdd", "GeluApproximate")


@pytest.mark.parametrize("nodes", [
    [MATRIX, *PRODUCT, *BIAS, node("y", "Neg", "l")],
    [placeholder("x", (3, 4), dtypes.float64), const("w", numbers(4, 4), np.float64),
     node("l", "MatMul", "x", "w", T=dtypes.float64), const("v", numbers(4), np.float64),
     node("b", "BiasAdd", "l", "v", T=dtypes.float64)],
    [MATRIX, const("w", numbers(4, 4)), node("l", "MatMul", "x", "w", device="/device:GPU:0"),
     const("v", numbers(4)), node("b", "BiasAdd", "l", "v", device="/device:GPU:0")],
    [IMAGE, DEPTHWISE[0], conv("l", "x", "w", "DepthwiseConv2dNative", padding="EXPLICIT",
                               explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0]),
     *bias_add("b", "l", numbers(8))],
    [IMAGE, *CONVOLUTION, *bias_add("b", "l", numbers(5), data_format="NCHW")],
], ids=["another consumer", "float64 products", "another device", "explicit padding", "another layout"])
def test_layers_that_no_fused_op_computes_stay(nodes):
    before = graph(*nodes)
    assert remapped(before, "b", *(["y"] if "y" in before else [])) is before


@given(st.integers(0, 1 << 30))
def test_fused_layers_compute_the_same(seed):
    nodes, fetches = random_layers(seed)
    remap_and_compare(nodes, fetches)
