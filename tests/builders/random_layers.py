"""Random chains of layers over `x`: products or convolutions with biases, batch normalisations and activations."""

from __future__ import annotations

import random

import numpy as np
from builders.graphs import FLOAT, node, placeholder
from builders.graphs import const as constant_node
from builders.rewritten_graphs import conv, numbers
from heald.graphs.graph.graph import Node

CPU = "/device:CPU:0"
CHANNELS = 4
ACTIVATIONS = ("Relu", "Relu6", "Elu", "Tanh", "Sigmoid", "LeakyRelu", "Softplus", "Neg")


def random_layers(seed: int) -> tuple[list[Node], list[str]]:
    """The nodes, and the names of those that are fetched."""
    choose = random.Random(seed)  # noqa: S311 - repeatable test graphs
    has_images = choose.random() < 0.6
    nodes = [placeholder("x", (1, 6, 6, CHANNELS) if has_images else (3, CHANNELS))]
    last, fetches = "x", []
    for number in range(choose.randint(1, 4)):
        block = _image_block(choose, f"{number}", last) if has_images else _matrix_block(choose, f"{number}", last)
        if choose.random() < 0.8:
            block.append(_activation(choose, f"{number}/act", block[-1].name))
        nodes += block
        last = block[-1].name
        if choose.random() < 0.2:
            side = choose.choice(block)
            if side.op != "Const":
                nodes.append(node(f"{number}/side", "Neg", side.name))
                fetches.append(f"{number}/side")
    return [each.replace(device=CPU) for each in nodes], [*fetches, last]


def _activation(choose: random.Random, name: str, x: str) -> Node:
    op = choose.choice(ACTIVATIONS)
    return node(name, op, x, **({"alpha": 0.25} if op == "LeakyRelu" else {}))


def _bias(choose: random.Random, name: str, x: str) -> list[Node]:
    op, more = choose.choice((("BiasAdd", {"data_format": "NHWC"}), ("BiasAdd", {}), ("AddV2", {})))
    return [constant_node(f"{name}/b", numbers(CHANNELS, seed=7)), node(f"{name}/bias", op, x, f"{name}/b", **more)]


def _matrix_block(choose: random.Random, name: str, x: str) -> list[Node]:
    block = [constant_node(f"{name}/w", numbers(CHANNELS, CHANNELS, seed=int(name))),
             node(f"{name}/product", "MatMul", x, f"{name}/w", transpose_a=False, transpose_b=choose.random() < 0.5)]
    return block + (_bias(choose, name, f"{name}/product") if choose.random() < 0.8 else [])


def _image_block(choose: random.Random, name: str, x: str) -> list[Node]:
    op = choose.choice(("Conv2D", "Conv2D", "DepthwiseConv2dNative"))
    depth = 1 if op == "DepthwiseConv2dNative" else CHANNELS
    block = [constant_node(f"{name}/w", numbers(3, 3, CHANNELS, depth, seed=int(name))),
             conv(f"{name}/layer", x, f"{name}/w", op, padding="SAME")]
    kind = choose.random()
    if kind < 0.5:
        block += _bias(choose, name, f"{name}/layer")
    elif kind < 0.8:
        block += [constant_node(f"{name}/{parameter}", np.abs(numbers(CHANNELS, seed=at)) + 0.5)
                  for at, parameter in enumerate(("scale", "offset", "mean", "variance"))]
        block.append(Node(f"{name}/norm", "FusedBatchNormV3", [
            block[1].name, *(f"{name}/{p}" for p in ("scale", "offset", "mean", "variance"))], attrs={
            "T": FLOAT, "U": FLOAT, "epsilon": 1e-3, "is_training": choose.random() < 0.3, "data_format": "NHWC"}))
    return block
