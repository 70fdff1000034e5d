"""Pools: the mean of windows is taken behind the convolution, where that has fewer channels."""

from __future__ import annotations

import numpy as np
import pytest
from builders.graphs import const, node, placeholder
from builders.rewritten_graphs import conv, numbers, rewrite_and_compare


def pooled_branch(padding="SAME", stride=1, filters=2, taps=1, op="BiasAdd", values=None, turned=False, x=(2, 5, 6, 4)):
    """The mean of images before a convolution."""
    shift = [const("v", numbers(filters) if values is None else values)]
    inputs = ("v", "c") if turned else ("c", "v")
    return [placeholder("x", x), node("p", "AvgPool", "x", ksize=[1, 3, 3, 1], strides=[1, stride, stride, 1],
                                      padding=padding, data_format="NHWC"),
            const("w", numbers(taps, taps, x[-1], filters)), conv("c", "p", "w"), *shift, node("s", op, *inputs),
            node("y", "Relu", "s")]


@pytest.mark.parametrize("change", [
    {}, {"padding": "VALID"}, {"op": "AddV2", "turned": True}, {"op": "AddV2", "values": 2.0},
])
def test_the_mean_of_windows_is_taken_of_fewer_channels(change):
    rewritten = rewrite_and_compare(pooled_branch(**change), "pools", fetches=("y", "s"))
    assert (rewritten["s"].op, rewritten["c"].inputs[0].node) == ("AvgPool", "x")


@pytest.mark.parametrize("change", [
    {"stride": 2}, {"filters": 4}, {"taps": 2}, {"op": "Mul"}, {"op": "AddV2", "values": np.ones((3, 2))},
])
def test_the_mean_of_windows_stays_where_nothing_is_gained(change):
    if "values" in change:
        change = change | {"x": (2, 5, 3, 4)}
    assert rewrite_and_compare(pooled_branch(**change), "pools")["s"].op != "AvgPool"


@pytest.mark.parametrize("fetches", [("y", "p"), ("y", "c")])
def test_the_mean_of_windows_stays_where_it_is_fetched(fetches):
    assert rewrite_and_compare(pooled_branch(), "pools", fetches=fetches)["s"].op == "BiasAdd"
