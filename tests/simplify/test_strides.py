"""Strides: pixels over which a later convolution steps are not computed."""

from __future__ import annotations

import pytest
from builders.graphs import const, node, placeholder
from builders.rewritten_graphs import bias_add, conv, numbers, op_counts, rewrite_and_compare


def strided_residual(ends=2, stride=2, taps=1, last="Relu", size=9):
    """Two convolutions whose sum with the images is read by convolutions that step over some of it."""
    nodes = [placeholder("x", (2, size, size, 3)), const("wa", numbers(3, 3, 3, 4)), const("wb", numbers(1, 1, 4, 3)),
             node("in", "Relu6", "x"), conv("a", "in", "wa", padding="SAME"), *bias_add("ab", "a", numbers(4)),
             node("ar", "Relu", "ab"), conv("b", "ar", "wb"), *bias_add("bb", "b", numbers(3)),
             node("sum", "AddV2", "bb", "in"), node("r", last, "sum"), const("we", numbers(taps, taps, 3, 5))]
    nodes += [conv(f"e{i}", "r", "we", stride=stride) for i in range(ends)]
    return [*nodes, node("y", "AddN", *(f"e{i}" for i in range(ends)), N=ends)]


@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("ends", [1, 2])
@pytest.mark.parametrize("stride", [2, 3])
def test_skipped_pixels_are_not_computed(size, ends, stride):
    rewritten = rewrite_and_compare(strided_residual(ends, stride, size=size), "strides")
    assert {name: rewritten[name].attrs["strides"] for name in ("a", "b", "e0")} == {
        "a": (1, stride, stride, 1), "b": (1, 1, 1, 1), "e0": (1, 1, 1, 1)}
    assert op_counts(rewritten)["AvgPool"] == 1  # of `in`, which the first convolution needs whole


@pytest.mark.parametrize("change", [
    {"taps": 2}, {"stride": 1}, {"last": "Softmax"},
])
def test_images_that_are_needed_whole_stay(change):
    rewritten = rewrite_and_compare(strided_residual(**change), "strides")
    assert "AvgPool" not in op_counts(rewritten)
    assert rewritten["a"].attrs["strides"] == (1, 1, 1, 1)


@pytest.mark.parametrize("others", [
    [node("other", "Neg", "r")], [conv("other", "r", "we", stride=3)], [conv("other", "r", "we")],
])
def test_images_with_other_readers_stay(others):
    rewritten = rewrite_and_compare(strided_residual() + others, "strides", fetches=("y", "other"))
    assert rewritten["a"].attrs["strides"] == (1, 1, 1, 1)


def test_images_that_are_fetched_stay():
    rewritten = rewrite_and_compare(strided_residual(), "strides", fetches=("y", "r"))
    assert rewritten["a"].attrs["strides"] == (1, 1, 1, 1)


@pytest.mark.parametrize(("padding", "taps", "dilation", "op"), [
    ("VALID", (3, 3), 1, "Conv2D"), ("SAME", (2, 3), 1, "Conv2D"), ("SAME", (3, 2), 2, "Conv2D"),
    ("SAME", (2, 2), 1, "DepthwiseConv2dNative"), ("SAME", (3, 2), 2, "DepthwiseConv2dNative"),
    ("EXPLICIT", (3, 3), 1, "Conv2D"),
])
def test_a_convolution_gets_the_strides_and_keeps_its_windows(padding, taps, dilation, op):
    explicit = {"explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]} if padding == "EXPLICIT" else {}
    nodes = [placeholder("x", (1, 11, 10, 3)), const("w", numbers(*taps, 3, 2)),
             conv("a", "x", "w", op, padding=padding, dilations=[1, dilation, dilation, 1], **explicit),
             node("r", "Relu", "a"), const("v", numbers(1, 1, 2 if op == "Conv2D" else 6, 4)),
             conv("y", "r", "v", stride=2)]
    assert rewrite_and_compare(nodes, "strides")["a"].attrs["strides"] == (1, 2, 2, 1)


def test_strides_that_follow_each_other_are_multiplied():
    nodes = [placeholder("x", (1, 13, 13, 2)), const("w", numbers(3, 3, 2, 2)), const("v", numbers(1, 1, 2, 2)),
             conv("a", "x", "w", stride=2), conv("b", "a", "v", stride=2), conv("y", "b", "v", stride=2)]
    rewritten = rewrite_and_compare(nodes, "strides")
    assert [rewritten[name].attrs["strides"][1] for name in ("a", "b", "y")] == [8, 1, 1]


def test_a_convolution_whose_padding_goes_with_its_strides_stays():
    nodes = [placeholder("x", (1, 13, 13, 2)), const("w", numbers(3, 3, 2, 2)), const("v", numbers(1, 1, 2, 2)),
             conv("a", "x", "w", stride=2, padding="SAME"), conv("y", "a", "v", stride=2)]
    assert rewrite_and_compare(nodes, "strides")["a"].attrs["strides"] == (1, 2, 2, 1)
