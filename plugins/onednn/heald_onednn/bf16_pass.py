"""Pass `bfloat16`: products with constant weights, and the nodes between them, compute in bfloat16 instead of float32.

Nodes that are fed, fetched or run stay float32. The pass puts a Cast at every border between the two types. A product
in front of such a Cast writes float32 itself. Weights become constants of bfloat16, half as large.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from heald.api import (
    DType,
    Graph,
    Input,
    Node,
    PassContext,
    Resolved,
    ValueInfo,
    constant,
    dtypes,
    errors,
    new_name,
    placed_like,
    pruned,
    topological_order,
)

if TYPE_CHECKING:
    from .memory import Array

NARROW, WIDE = dtypes.bfloat16, dtypes.float32
LARGEST = (2 - 2**-7) * 2.0**127  # finite number of bfloat16
WEIGHTS = 1  # input index of a product's weights


def convert_if_fast(graph: Graph, context: PassContext, threads: int) -> Graph:
    """Convert the graph on a CPU with fast bfloat16 instructions; elsewhere return the graph as it is."""
    from .library import open_library

    try:
        open_library(threads)
    except errors.Unavailable:
        return graph
    from .precision import has_fast_bfloat16

    return convert(graph, context) if has_fast_bfloat16() else graph


def convert(graph: Graph, context: PassContext) -> Graph:
    """The graph with its convertible nodes in bfloat16."""
    if not any(node.op in PRODUCTS for node in graph):
        return graph
    facts = Facts(graph, context)
    order = topological_order(graph)
    found: set[str] = set()  # names of the nodes to convert
    for node in order:
        if _is_product(facts, node) or _follows(facts, found, node):
            found.add(node.name)
    found -= _parts_of_functions(order, found)
    return pruned(_Rewriting(facts, found).graph(), context.kept) if found else graph


class Facts:
    """The properties of a graph that the rules read."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph = graph
        self.kept = context.kept
        self._context = context
        self._known = context.infer(graph)

    def entry(self, node: Node) -> Resolved | None:
        """The resolved node if it computes in float32, else None."""
        entry: Resolved | None = self._context.resolve(node)
        return entry if entry is not None and entry.attrs.get("T") is WIDE else None

    def wide(self, node: Node) -> list[int]:
        """The indices of a node's float32 inputs; empty unless the node computes in float32."""
        entry = self.entry(node)
        return [] if entry is None else [i for i, tensor in enumerate(entry.input_tensors) if tensor.dtype is WIDE]

    def is_known(self, source: Input) -> bool:
        """True where the elements of a tensor are known before the run."""
        told = self._told(source)
        return told is not None and told.is_known

    def value(self, source: Input) -> Array | None:
        """The elements of a tensor, None unless they are known before the run. A weight in parts is multiplied out."""
        told = self._told(source)
        return None if told is None else told.value

    def rank(self, source: Input) -> int | None:
        told = self._told(source)
        return None if told is None else told.rank

    def is_narrow(self, source: Input, found: set[str]) -> bool:
        """True for the output of a converted node. A kept node counts as float32: a caller may feed it."""
        return source.node in found and source.index == 0 and source.node not in self.kept

    def _told(self, source: Input) -> ValueInfo | None:
        outputs = self._known.get(source.node, ())
        return outputs[source.index] if source.index < len(outputs) else None


def _is_product(facts: Facts, node: Node) -> bool:
    entry = facts.entry(node) if node.op in PRODUCTS else None
    return entry is not None and facts.is_known(node.inputs[WEIGHTS]) and PRODUCTS[node.op](facts, entry)


def _follows(facts: Facts, found: set[str], node: Node) -> bool:
    """True where each float32 input of the node is converted or known, and one at least is converted."""
    entry = facts.entry(node) if node.op in BETWEEN else None
    if entry is None or not BETWEEN[node.op](facts, entry):
        return False
    computed = [node.inputs[i] for i in facts.wide(node) if not facts.is_known(node.inputs[i])]
    return bool(computed) and all(facts.is_narrow(source, found) for source in computed)


def _parts_of_functions(order: Sequence[Node], found: Collection[str]) -> set[str]:
    """The converted nodes that are better left in float32: possible parts of a matched function (function_matching.py)
    whose other nodes are float32. Constants that were rounded to bfloat16 match no function. A product in front of
    such a node writes float32 itself."""
    from .function_matching import COMPUTED

    taken: set[str] = set()  # inputs of float32 nodes that may be part of a function
    parts: set[str] = set()
    for node in reversed(order):
        if node.name in found and node.name in taken and node.op in ELEMENTWISE:
            parts.add(node.name)
        if node.op in COMPUTED and (node.name not in found or node.name in parts):
            taken.update(source.node for source in node.inputs)
    return parts


class _Rewriting:
    """Builds the graph in which the nodes `found` compute in bfloat16."""

    def __init__(self, facts: Facts, found: set[str]) -> None:
        self._facts, self._found = facts, found
        self._named = set(facts.graph.nodes)
        self._made: list[Node] = []
        self._rims: dict[Input, Input] = {}  # from a tensor to the same tensor in the other type

    def graph(self) -> Graph:
        for node in self._facts.graph:
            if node.name in self._found:
                self._narrow(node)
            elif any(self._is_narrow(source) for source in node.inputs):
                self._made.append(node.replace(
                    inputs=[self._rim(source) if self._is_narrow(source) else source for source in node.inputs]))
        return self._facts.graph.replace(nodes=self._made)

    def _is_narrow(self, source: Input) -> bool:
        return self._facts.is_narrow(source, self._found)

    def _narrow(self, node: Node) -> None:
        wide = self._facts.wide(node)
        made = node.replace(attrs={"T": NARROW}, inputs=[
            self._rim(source) if i in wide and not self._is_narrow(source) else source
            for i, source in enumerate(node.inputs)])
        if node.name in self._facts.kept:
            made = made.replace(name=new_name(f"{node.name}/bfloat16", self._named))
            self._made.append(placed_like(_cast(node.name, Input(made.name), WIDE), node))
        self._made.append(made)

    def _rim(self, source: Input) -> Input:
        """The same tensor in the other type: a Cast, or a rounded constant."""
        if source not in self._rims:
            target = WIDE if self._is_narrow(source) else NARROW
            name = new_name(f"{source.node}/{target.name}", self._named)
            value = None if source.node in self._facts.kept else self._facts.value(source)
            made = _cast(name, source, target) if value is None else constant(name, _rounded(value))
            self._made.append(placed_like(made, self._facts.graph[source.node]))
            self._rims[source] = Input(name)
        return self._rims[source]


def _cast(name: str, source: Input, target: DType) -> Node:
    given = WIDE if target is NARROW else NARROW
    return Node(name, "Cast", [source], attrs={"SrcT": given, "DstT": target, "Truncate": False})


def _rounded(value: Array) -> Array:
    """The values in bfloat16. Finite values beyond its largest number, such as masks of the least float32, become that
    number and not infinity."""
    near: Array = np.where(np.isinf(value), value, np.clip(value, -LARGEST, LARGEST))
    return near.astype(NARROW.numpy)


Rule = Callable[[Facts, Resolved], bool]  # True where the node may compute in bfloat16


def _always(facts: Facts, entry: Resolved) -> bool:
    return True


def _last_channels(facts: Facts, entry: Resolved) -> bool:
    return bool(entry.attrs["data_format"] == "NHWC")


def _depthwise(facts: Facts, entry: Resolved) -> bool:
    strides, dilations = entry.attrs["strides"], entry.attrs["dilations"]
    return len(strides) == 4 and strides[1] == strides[2] and set(dilations) == {1} and _last_channels(facts, entry)


def _images(facts: Facts, entry: Resolved) -> bool:
    """True for a Mean over height and width of NHWC images."""
    images, axes = entry.node.inputs
    numbers = facts.value(axes)
    return numbers is not None and facts.rank(images) == 4 and {int(n) % 4 for n in numbers.reshape(-1)} == {1, 2}


PRODUCTS: Mapping[str, Rule] = {
    "BatchMatMulV2": _always, "Conv2D": _last_channels, "DepthwiseConv2dNative": _depthwise, "MatMul": _always,
}
ELEMENTWISE: Mapping[str, Rule] = {
    **dict.fromkeys(("AddV2", "Elu", "LeakyRelu", "Mul", "Relu", "Relu6", "Sigmoid", "Sub", "Tanh"), _always),
    "BiasAdd": _last_channels,
}
BETWEEN: Mapping[str, Rule] = {
    **ELEMENTWISE,
    **dict.fromkeys(("ConcatV2", "ExpandDims", "Identity", "Pad", "Reshape", "Squeeze"), _always),
    **dict.fromkeys(("AvgPool", "MaxPool"), _last_channels),
    "Mean": _images,
}
