"""Random graphs for cases of graph passes: chains and diamonds of common ops over small matrices.

All values are float32[4, 4], so that any op reads any value. Constants, copies of nodes, pairs of inverse ops and
identities are frequent: passes look for them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from heald.api import Graph, Node, ShapeAttr, dtypes

from .arrays import generator
from .subject import constant

FLOAT, INT = dtypes.float32, dtypes.int32
SIZE = 4
UNARY = ("Neg", "Relu", "Tanh", "Identity", "Square", "Abs", "Sigmoid", "StopGradient", "Relu6", "Softmax")
BINARY = ("AddV2", "Mul", "Sub", "Maximum", "Minimum")
FORMS = ("unary", "unary", "binary", "binary", "product", "bias", "transpose", "reshape", "pad", "copy", "constant")


class RandomGraph(NamedTuple):
    """A graph, the arrays to feed, and the names of the tensors to fetch."""

    graph: Graph
    feeds: dict[str, Any]
    fetches: list[str]


def random_graph(seed: str) -> RandomGraph:
    """The graph of a seed: 12 to 40 nodes over two inputs."""
    random = generator("graph", seed)
    nodes = [Node(name, "Placeholder", attrs={"dtype": FLOAT, "shape": ShapeAttr((SIZE, SIZE))}) for name in ("x", "y")]
    values = ["x", "y"]
    for number in range(int(random.integers(8, 25))):
        sources = [values[int(random.integers(max(0, len(values) - 6), len(values)))] for _ in range(2)]
        grown = _grow(f"n{number}", FORMS[int(random.integers(len(FORMS)))], sources, random, nodes)
        nodes += grown
        values.append(grown[-1].name)
    feeds = {name: random.normal(size=(SIZE, SIZE)).astype(np.float32) for name in ("x", "y")}
    return RandomGraph(Graph(nodes), feeds, [values[-1], values[len(values) // 2]])


def _grow(name: str, form: str, sources: list[str], random: np.random.Generator, nodes: list[Node]) -> list[Node]:
    """The nodes of one more value; the last one has its name."""
    first, second = sources
    if form == "unary":
        op = UNARY[int(random.integers(len(UNARY)))]
        return [Node(name, op, [first], attrs={"T": FLOAT})]
    if form == "binary":
        return [Node(name, BINARY[int(random.integers(len(BINARY)))], [first, second], attrs={"T": FLOAT})]
    if form == "product":
        scale = constant(f"{name}/w", (random.normal(size=(SIZE, SIZE)) / SIZE).astype(np.float32))
        return [scale, Node(name, "MatMul", [first, scale.name], attrs={"T": FLOAT})]
    if form == "bias":
        bias = constant(f"{name}/b", random.normal(size=SIZE).astype(np.float32))
        return [bias, Node(name, "BiasAdd", [first, bias.name], attrs={"T": FLOAT})]
    if form == "transpose":
        order = constant(f"{name}/order", np.array([1, 0], np.int32))
        turned = Node(f"{name}/turned", "Transpose", [first, order.name], attrs={"T": FLOAT, "Tperm": INT})
        return [order, turned, Node(name, "Transpose", [turned.name, order.name], attrs={"T": FLOAT, "Tperm": INT})]
    if form == "reshape":
        flat, square = (constant(f"{name}/{part}", np.array(dims, np.int32))
                        for part, dims in (("flat", [SIZE * SIZE]), ("square", [SIZE, SIZE])))
        row = Node(f"{name}/row", "Reshape", [first, flat.name], attrs={"T": FLOAT, "Tshape": INT})
        return [flat, square, row, Node(name, "Reshape", [row.name, square.name], attrs={"T": FLOAT, "Tshape": INT})]
    if form == "pad":
        none = constant(f"{name}/none", np.zeros((2, 2), np.int32))
        return [none, Node(name, "Pad", [first, none.name], attrs={"T": FLOAT, "Tpaddings": INT})]
    if form == "copy":
        node = nodes[int(random.integers(2, len(nodes)))] if len(nodes) > 2 else nodes[0]
        is_value = node.op not in ("Placeholder", "Const") and "/" not in node.name
        return [Node(name, node.op, list(node.inputs), attrs=dict(node.attrs))] if is_value else [
            Node(name, "Identity", [first], attrs={"T": FLOAT})]
    return [constant(name, random.normal(size=(SIZE, SIZE)).astype(np.float32))]
