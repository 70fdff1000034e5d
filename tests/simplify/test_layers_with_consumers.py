"""Layers with other consumers keep their weights, under the passes `batch-norm` and `scales`."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import node, placeholder
from builders.rewritten_graphs import LAYERS, batch_norm, numbers, op_counts, rewrite_and_compare, scaling_nodes

KEPT = {
    "the layer is fetched": {"fetches": ("y", "l")},
    "the layer has another user": {"more": [node("z", "Neg", "l")], "fetches": ("y", "z")},
    "the weights have another user": {"more": [node("z", "Neg", "w")], "fetches": ("y", "z")},
    "the weights are fetched": {"fetches": ("y", "w")},
    "something waits for the layer": {"more": [node("z", "Neg", "x").replace(controls=["l"])], "fetches": ("y", "z")},
    "the scaling waits for something": {"last": {"controls": ["before"]}},
    "the scaling is to be elsewhere": {"last": {"device": "EXAMPLE:0"}},
    "the scaling is to be with others": {"last": {"attrs": {"_class": [b"loc:@x"]}}},
}


@pytest.mark.parametrize("name", ["batch-norm", "scales"])
@pytest.mark.parametrize("case", KEPT)
def test_a_layer_with_other_readers_keeps_its_output(name, case):
    how = KEPT[case]
    last = batch_norm("y", "l", 4) if name == "batch-norm" else scaling_nodes("y", "l", "Mul", (4,), 1)
    last[-1] = last[-1].replace(**how.get("last", {}))
    nodes = [placeholder("x", (1, 4, 4, 3)), node("before", "CheckNumerics", "x", message=""),
             *LAYERS["Conv2D"]("NHWC", "VALID"), *how.get("more", []), *last]
    rewritten = rewrite_and_compare(nodes, name, fetches=how.get("fetches", ("y",)))
    assert rewritten["l"].op == "Conv2D"
    assert "BiasAdd" not in op_counts(rewritten)
    assert np.array_equal(rewritten["w"].attrs["value"].array(), numbers(2, 2, 3, 4))
