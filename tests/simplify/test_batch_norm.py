"""Batch-norm: batch normalisation goes into the layer in front of it, or becomes a factor and a shift."""

from __future__ import annotations

import pytest
from builders.graphs import FLOAT, node, placeholder
from builders.rewritten_graphs import (
    CHANNELS,
    IMAGE_SHAPES,
    LAYERS,
    PASSES,
    batch_norm,
    bias_add,
    numbers,
    op_counts,
    rewrite_and_compare,
    session_with_passes,
)
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes

BATCH_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("data_format", IMAGE_SHAPES)
@pytest.mark.parametrize("op", BATCH_NORMS)
@pytest.mark.parametrize("biased", [False, True])
def test_batch_normalisation_behind_a_layer_goes_into_its_weights(layer, data_format, op, biased):
    channels = CHANNELS[layer]
    between = bias_add("b", "l", numbers(channels, seed=9), data_format) if biased else []
    nodes = [placeholder("x", IMAGE_SHAPES[data_format]), *LAYERS[layer](data_format, "SAME"), *between,
             *batch_norm("n", "b" if biased else "l", channels, op, data_format), node("y", "Relu", "n")]
    rewritten = rewrite_and_compare(nodes, "batch-norm")
    assert op_counts(rewritten) == {rewritten["l"].op: 1, "BiasAdd": 1, "Relu": 1}
    assert (rewritten["n"].op, rewritten["n"].inputs[0].node) == ("BiasAdd", "l")

NORMS = {  # the remaining ops, and the change of the graph
    "images": ({"Mul": 1, "AddV2": 1}, {}),
    "channels first": ({"Mul": 1, "AddV2": 1}, {"shape": (2, 3, 4, 5), "data_format": "NCHW"}),
    "volumes": ({"Mul": 1, "AddV2": 1}, {"shape": (2, 2, 4, 5, 3), "data_format": "NDHWC"}),
    "volumes, channels first": ({"Mul": 1, "AddV2": 1}, {"shape": (2, 3, 2, 4, 5), "data_format": "NCDHW"}),
    "training": ({"FusedBatchNormV3": 1}, {"is_training": True}),
    "channels that are not known": ({"FusedBatchNormV3": 1}, {"shape": None}),
    "the mean is used too": ({"FusedBatchNormV3": 1}, {"fetches": ("y", "n:1")}),
    "the mean is used by another node": ({"FusedBatchNormV3": 1, "Neg": 1}, {"fetches": ("y", "mean")}),
    "halves": ({"FusedBatchNormV3": 1}, {"T": dtypes.float16}),
}


@pytest.mark.parametrize("case", NORMS)
def test_batch_normalisation_elsewhere_is_a_factor_and_a_shift(case):
    left, how = NORMS[case]
    shape, dtype = how.pop("shape", (2, 4, 5, 3)), how.get("T", FLOAT)
    fetches = how.pop("fetches", ("y",))
    nodes = [placeholder("x", shape, dtype), *batch_norm("n", "x", 3, **how), node("y", "Relu", "n", T=dtype),
             node("mean", "Neg", "n:1")]
    feed = {"x": numbers(*(shape or (2, 4, 5, 3)), dtype=dtype.numpy)}
    rewritten = rewrite_and_compare(nodes, "batch-norm", fetches=fetches, feed=feed)
    assert op_counts(rewritten) == left | {"Relu": 1}


def test_wrong_channels_of_batch_normalisation_are_still_refused():
    nodes = [placeholder("x", (2, 4, 5, 1)), *batch_norm("n", "x", 3), node("y", "Relu", "n")]
    with pytest.raises(InvalidArgument, match="channels") as caught:
        session_with_passes(nodes, *PASSES).run("y", {"x": numbers(2, 4, 5, 1)})
    assert caught.value.node == "n"
