"""Graphs for the passes of heald-simplify: layers, scalings, and sessions that run chosen passes.

`rewrite_and_compare` is the common check: a graph after passes computes the same as before, on CPU:0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import heald
import numpy as np
from builders.graphs import FLOAT, const, graph, node
from harness.shared_runtimes import shared_runtime
from heald.graphs.graph.graph import Graph, Node
from heald.graphs.session.requested_passes import run_requested_passes
from heald.runtime.service.runtime import runtime
from heald.runtime.values import dtypes

Array = np.ndarray[Any, Any]

PASSES = ("constants", "identities", "pads", "batch-norm", "scales", "duplicates", "reshapes", "pools", "strides",
          "cells", "sequences", "slices")
INT = dtypes.int32


def session_with_passes(nodes: Iterable[Node], *passes: str) -> heald.Session:
    """A session over these nodes; of the plugin's `PASSES` it runs only the given ones."""
    disabled = [name for name in PASSES if name not in passes]
    config = {"passes": {"disable": disabled}, "placement": {"fallback": "allow"}}
    return heald.Session(graph(*nodes), shared_runtime(config))


def optimized_graph(nodes: Iterable[Node], *passes: str, fetches: Sequence[str] = ("y",),
                    feeds: Sequence[str] = ("x",)) -> Graph:
    *_, (_, optimized) = session_with_passes(nodes, *passes).graphs_by_pass(list(fetches), list(feeds))
    return optimized


def op_counts(nodes: Iterable[Node]) -> Counter[str]:
    """The number of nodes of each op, without constants and placeholders."""
    return Counter(node.op for node in nodes if node.op not in ("Const", "Placeholder"))


def rewrite_and_compare(nodes: Sequence[Node], *passes: str, fetches: Sequence[str] = ("y",),
                        feed: dict[str, Any] | None = None, tolerance: float = 1e-5) -> Graph:
    """Return the graph after the passes; assert equal results before and after, and that each pass is idempotent.

    The default feed is `x`, random numbers from -2 to 2.
    """
    feeds = feed if feed is not None else {"x": numbers(*_full_shape(nodes[0]), dtype=nodes[0].attrs["dtype"].numpy)}
    plain, rewriting = session_with_passes(nodes), session_with_passes(nodes, *passes)
    for before, after in zip(plain.run(list(fetches), feeds), rewriting.run(list(fetches), feeds), strict=True):
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
        largest = max(1.0, np.abs(before.astype(np.float64)).max(initial=0))
        np.testing.assert_allclose(after.astype(np.float64), before.astype(np.float64), rtol=0,
                                   atol=tolerance * largest)
    *_, (_, rewritten) = rewriting.graphs_by_pass(list(fetches), tuple(feeds))
    kept_names = [name.partition(":")[0] for name in (*fetches, *feeds)]
    for name in passes:
        *_, (_, once), (_, again) = run_requested_passes(rewritten, [name, name], kept_names, runtime())
        assert again is once
    return rewritten


def _full_shape(x: Node) -> tuple[int, ...]:
    return tuple(2 if length is None else length for length in x.attrs["shape"])


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


def vector(name: str, values: Any) -> Node:
    return const(name, values, np.int32)


def conv(name: str, x: str, weights: str, op: str = "Conv2D", data_format: str = "NHWC", padding: str = "VALID",
         T: dtypes.DType = FLOAT, stride: int = 1, **attributes: Any) -> Node:  # noqa: N803
    return Node(name, op, [x, weights], attrs={
        "T": T, "strides": [1, stride, stride, 1] if data_format == "NHWC" else [1, 1, stride, stride],
        "padding": padding, "data_format": data_format} | attributes)


def transposed_conv(name: str, sizes: str, weights: str, x: str, data_format: str = "NHWC") -> Node:
    return Node(name, "Conv2DBackpropInput", [sizes, weights, x], attrs={
        "T": FLOAT, "strides": [1, 1, 1, 1], "padding": "VALID", "data_format": data_format})


def batch_norm(name: str, x: str, channels: int, op: str = "FusedBatchNormV3", data_format: str = "NHWC",
               T: dtypes.DType = FLOAT, **attributes: Any) -> list[Node]:  # noqa: N803
    """A batch normalisation behind its parameters."""
    parameters = [const(f"{name}/{p}", np.abs(numbers(channels, seed=i)) + 0.5, np.float32)
                  for i, p in enumerate(("scale", "offset", "mean", "variance"))]
    types = {"T": T} | ({"U": FLOAT} if op != "FusedBatchNorm" else {})
    return [*parameters, Node(name, op, [x, *(parameter.name for parameter in parameters)], attrs={
        **types, "epsilon": 1e-3, "is_training": False, "data_format": data_format} | attributes)]


def bias_add(name: str, x: str, values: Any, data_format: str = "NHWC") -> list[Node]:
    return [const(f"{name}/values", values), node(name, "BiasAdd", x, f"{name}/values", data_format=data_format)]


# The layer `l` over `x`, of weights `w`, by data format and padding.
LAYERS = {
    "Conv2D": lambda f, p: [const("w", numbers(2, 2, 3, 4)), conv("l", "x", "w", data_format=f, padding=p)],
    "groups": lambda f, p: [const("w", numbers(2, 2, 1, 6)), conv("l", "x", "w", data_format=f, padding=p)],
    "DepthwiseConv2dNative": lambda f, p: [
        const("w", numbers(2, 2, 3, 2)), conv("l", "x", "w", "DepthwiseConv2dNative", f, p)],
    "Conv2DBackpropInput": lambda f, _: [
        const("w", numbers(2, 2, 5, 3)), vector("sizes", [2, 7, 6, 5] if f == "NHWC" else [2, 5, 7, 6]),
        transposed_conv("l", "sizes", "w", "x", f)],
}
CHANNELS = {"Conv2D": 4, "groups": 6, "DepthwiseConv2dNative": 6, "Conv2DBackpropInput": 5}
IMAGE_SHAPES = {"NHWC": (2, 6, 5, 3), "NCHW": (2, 3, 6, 5)}


def scaling_steps(data_format: str, channels: int) -> list[tuple[str, tuple[int, ...], int]]:
    """Each kind of scaling, by one number for each channel and by one for all: op, shape, input of the constant."""
    per_channel = (channels,) if data_format == "NHWC" else (1, channels, 1, 1)
    return [("Mul", per_channel, 0), ("AddV2", (), 1), ("Sub", per_channel, 0), ("RealDiv", (1, 1, 1), 1),
            ("Sub", (1,), 1), ("Div", per_channel, 1), ("Add", per_channel, 0), ("Mul", (), 1)]


def scaling_nodes(name: str, x: str, op: str, shape: tuple[int, ...], constant_index: int) -> list[Node]:
    """`op` of x and a constant of this shape, which is its input `constant_index`."""
    constant = const(f"{name}/c", numbers(*shape, seed=3) ** 2 + 0.5)
    inputs = [x, constant.name] if constant_index else [constant.name, x]
    return [constant, node(name, op, *inputs)]
