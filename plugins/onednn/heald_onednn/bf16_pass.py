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
LARGEST_BFLOAT16 = (2 - 2**-7) * 2.0**127  # finite number of bfloat16
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
    converted: set[str] = set()  # names of the nodes to convert
    for node in order:
        if _is_product(facts, node) or _extends_conversion(facts, converted, node):
            converted.add(node.name)
    converted -= _parts_of_functions(order, converted)
    return pruned(_Rewriting(facts, converted).graph(), context.kept) if converted else graph


class Facts:
    """The properties of a graph that the rules read."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph = graph
        self.kept = context.kept
        self._context = context
        self._infos = context.infer(graph)

    def entry(self, node: Node) -> Resolved | None:
        """The resolved node if it computes in float32, else None."""
        entry: Resolved | None = self._context.resolve(node)
        return entry if entry is not None and entry.attrs.get("T") is WIDE else None

    def float32_inputs(self, node: Node) -> list[int]:
        """The indices of a node's float32 inputs; empty unless the node computes in float32."""
        entry = self.entry(node)
        return [] if entry is None else [i for i, tensor in enumerate(entry.input_tensors) if tensor.dtype is WIDE]

    def is_known(self, source: Input) -> bool:
        """True where the elements of a tensor are known before the run."""
        info = self._info(source)
        return info is not None and info.is_known

    def value(self, source: Input) -> Array | None:
        """The elements of a tensor, None unless they are known before the run. A weight in parts is multiplied out."""
        info = self._info(source)
        return None if info is None else info.value

    def rank(self, source: Input) -> int | None:
        info = self._info(source)
        return None if info is None else info.rank

    def is_narrow(self, source: Input, converted: set[str]) -> bool:
        """True for the output of a converted node. A kept node counts as float32: a caller may feed it."""
        return source.node in converted and source.index == 0 and source.node not in self.kept

    def _info(self, source: Input) -> ValueInfo | None:
        outputs = self._infos.get(source.node, ())
        return outputs[source.index] if source.index < len(outputs) else None


def _is_product(facts: Facts, node: Node) -> bool:
    entry = facts.entry(node) if node.op in PRODUCTS else None
    return entry is not None and facts.is_known(node.inputs[WEIGHTS]) and PRODUCTS[node.op](facts, entry)


def _extends_conversion(facts: Facts, converted: set[str], node: Node) -> bool:
    """True where each float32 input of the node is converted or known, and one at least is converted."""
    entry = facts.entry(node) if node.op in CONVERTIBLE_BETWEEN else None
    if entry is None or not CONVERTIBLE_BETWEEN[node.op](facts, entry):
        return False
    computed = [node.inputs[i] for i in facts.float32_inputs(node) if not facts.is_known(node.inputs[i])]
    return bool(computed) and all(facts.is_narrow(source, converted) for source in computed)


def _parts_of_functions(order: Sequence[Node], converted: Collection[str]) -> set[str]:
    """The converted nodes that are better left in float32.

    Such a node may be a part of a function that function_matching.py finds, and whose other nodes are float32.
    Constants that were rounded to bfloat16 match no function. A product in front of such a node writes float32 itself.
    """
    from .function_matching import EVALUATORS

    function_inputs: set[str] = set()  # inputs of float32 nodes that may be part of a function
    parts: set[str] = set()
    for node in reversed(order):
        if node.name in converted and node.name in function_inputs and node.op in ELEMENTWISE:
            parts.add(node.name)
        if node.op in EVALUATORS and (node.name not in converted or node.name in parts):
            function_inputs.update(source.node for source in node.inputs)
    return parts


class _Rewriting:
    """Builds the graph in which the nodes `converted` compute in bfloat16."""

    def __init__(self, facts: Facts, converted: set[str]) -> None:
        self._facts, self._converted = facts, converted
        self._named = set(facts.graph.nodes)
        self._new_nodes: list[Node] = []
        self._counterparts: dict[Input, Input] = {}  # from a tensor to the same tensor in the other type

    def graph(self) -> Graph:
        for node in self._facts.graph:
            if node.name in self._converted:
                self._convert_node(node)
            elif any(self._is_narrow(source) for source in node.inputs):
                self._new_nodes.append(node.replace(
                    inputs=[self._counterpart(source) if self._is_narrow(source) else source
                            for source in node.inputs]))
        return self._facts.graph.replace(nodes=self._new_nodes)

    def _is_narrow(self, source: Input) -> bool:
        return self._facts.is_narrow(source, self._converted)

    def _convert_node(self, node: Node) -> None:
        float32_inputs = self._facts.float32_inputs(node)
        converted_node = node.replace(attrs={"T": NARROW}, inputs=[
            self._counterpart(source) if i in float32_inputs and not self._is_narrow(source) else source
            for i, source in enumerate(node.inputs)])
        if node.name in self._facts.kept:
            converted_node = converted_node.replace(name=new_name(f"{node.name}/bfloat16", self._named))
            self._new_nodes.append(placed_like(_cast(node.name, Input(converted_node.name), WIDE), node))
        self._new_nodes.append(converted_node)

    def _counterpart(self, source: Input) -> Input:
        """The same tensor in the other type: a Cast, or a rounded constant."""
        if source not in self._counterparts:
            target = WIDE if self._is_narrow(source) else NARROW
            name = new_name(f"{source.node}/{target.name}", self._named)
            value = None if source.node in self._facts.kept else self._facts.value(source)
            counterpart = _cast(name, source, target) if value is None else constant(name, _as_bfloat16(value))
            self._new_nodes.append(placed_like(counterpart, self._facts.graph[source.node]))
            self._counterparts[source] = Input(name)
        return self._counterparts[source]


def _cast(name: str, source: Input, target: DType) -> Node:
    source_type = WIDE if target is NARROW else NARROW
    return Node(name, "Cast", [source], attrs={"SrcT": source_type, "DstT": target, "Truncate": False})


def _as_bfloat16(value: Array) -> Array:
    """The values in bfloat16. Finite values beyond its largest number, such as masks of the least float32, become that
    number and not infinity."""
    clipped: Array = np.where(np.isinf(value), value, np.clip(value, -LARGEST_BFLOAT16, LARGEST_BFLOAT16))
    return clipped.astype(NARROW.numpy)


Rule = Callable[[Facts, Resolved], bool]  # True where the node may compute in bfloat16


def _allow_always(facts: Facts, entry: Resolved) -> bool:
    return True


def _has_last_channels(facts: Facts, entry: Resolved) -> bool:
    return bool(entry.attrs["data_format"] == "NHWC")


def _is_plain_depthwise(facts: Facts, entry: Resolved) -> bool:
    strides, dilations = entry.attrs["strides"], entry.attrs["dilations"]
    return len(strides) == 4 and strides[1] == strides[2] and set(dilations) == {1} and _has_last_channels(facts, entry)


def _is_mean_of_images(facts: Facts, entry: Resolved) -> bool:
    """True for a Mean over height and width of NHWC images."""
    images, axes = entry.node.inputs
    numbers = facts.value(axes)
    return numbers is not None and facts.rank(images) == 4 and {int(n) % 4 for n in numbers.reshape(-1)} == {1, 2}


PRODUCTS: Mapping[str, Rule] = {
    "BatchMatMulV2": _allow_always, "Conv2D": _has_last_channels, "DepthwiseConv2dNative": _is_plain_depthwise,
    "MatMul": _allow_always,
}
ELEMENTWISE: Mapping[str, Rule] = {
    **dict.fromkeys(("AddV2", "Elu", "LeakyRelu", "Mul", "Relu", "Relu6", "Sigmoid", "Sub", "Tanh"), _allow_always),
    "BiasAdd": _has_last_channels,
}
CONVERTIBLE_BETWEEN: Mapping[str, Rule] = {
    **ELEMENTWISE,
    **dict.fromkeys(("ConcatV2", "ExpandDims", "Identity", "Pad", "Reshape", "Squeeze"), _allow_always),
    **dict.fromkeys(("AvgPool", "MaxPool"), _has_last_channels),
    "Mean": _is_mean_of_images,
}
