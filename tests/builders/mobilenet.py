"""MobileNetV2 as a frozen graph with random weights: its paper's table, batch normalisations folded into biases."""

from __future__ import annotations

from typing import Any

import numpy as np
from heald.graphs.graph.graph import Graph, Node

from .graphs import const, graph, node, placeholder

# Expansion, channels, repetitions, first stride of each group of blocks (arXiv:1801.04381, table 2).
BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
CLASSES = 1000


class _Network:
    def __init__(self, seed: int) -> None:
        self.nodes: list[Node] = []
        self._rng = np.random.default_rng(seed)

    def add(self, op: str, *inputs: str, **attrs: Any) -> str:
        self.nodes.append(node(f"n{len(self.nodes)}", op, *inputs, **attrs))
        return self.nodes[-1].name

    def weight(self, *dims: int, inputs: int) -> str:
        """A constant whose products with `inputs` normal values keep their variance."""
        values = self._rng.normal(0, np.sqrt(2 / inputs), dims)
        self.nodes.append(const(f"n{len(self.nodes)}", values))
        return self.nodes[-1].name

    def layer(self, x: str, depth: int, channels: int, taps: int = 1, stride: int = 1, *, ends: bool = True) -> str:
        """A convolution, bias and Relu6; depthwise for `channels` 0."""
        op = "Conv2D" if channels else "DepthwiseConv2dNative"
        dims = (taps, taps, depth, channels or 1)
        filters = self.weight(*dims, inputs=taps * taps * (depth if channels else 1))
        y = self.add(op, x, filters, strides=[1, stride, stride, 1], padding="SAME", data_format="NHWC",
                     dilations=[1, 1, 1, 1], explicit_paddings=[], **({"use_cudnn_on_gpu": True} if channels else {}))
        y = self.add("BiasAdd", y, self.weight(channels or depth, inputs=100), data_format="NHWC")
        return self.add("Relu6", y) if ends else y


def mobilenet(side: int, seed: int = 0, *, batch: int = 1) -> Graph:
    """`x`: images [batch, side, side, 3]; `logits`: [batch, 1000]."""
    net = _Network(seed)
    y, depth = net.layer("x", 3, 32, taps=3, stride=2), 32
    for expansion, channels, repetitions, first in BLOCKS:
        for stride in (first, *[1] * (repetitions - 1)):
            x, wide = y, depth * expansion
            y = net.layer(y, depth, wide) if expansion > 1 else y
            y = net.layer(net.layer(y, wide, 0, taps=3, stride=stride), wide, channels, ends=False)
            y = net.add("AddV2", x, y) if stride == 1 and depth == channels else y
            depth = channels
    y = net.layer(y, depth, 1280)
    net.nodes.append(const("axes", [1, 2], np.int32))
    from heald.runtime.values import dtypes

    y = net.add("Mean", y, "axes", Tidx=dtypes.int32, keep_dims=False)
    y = net.add("MatMul", y, net.weight(1280, CLASSES, inputs=1280), transpose_a=False, transpose_b=False)
    net.nodes.append(node("logits", "Identity", y))
    return graph(placeholder("x", (batch, side, side, 3)), *net.nodes)
