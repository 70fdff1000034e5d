"""Pass `strides`: the strides of 1x1 convolutions propagate to the producers of their images.

A 1x1 convolution with strides reads some rows and columns of its images. If no consumer reads the others, the
strides move backwards through elementwise ops to the convolution that produces the images. If that is a 1x1 convolution
too, they move on. An AvgPool of one pixel subsamples images that other consumers need whole. ResNet begins each of its
stages with such a convolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from heald.api import Graph, Input, Node, PassContext, dtypes, placed_like

from ..graph_view import GraphView

CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
POINTWISE = ("Add", "AddV2", "BiasAdd", "Elu", "Identity", "LeakyRelu", "Maximum", "Minimum", "Mul", "Relu", "Relu6",
             "Sigmoid", "Softplus", "Sub", "Tanh")
FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
SPATIAL = slice(1, 3)  # axes of images, channels last

Edits = dict[str, Node]


class Strided(NamedTuple):
    """A convolution in NHWC. `attrs`: all attributes, defaults included; `taps`: height and width of the filters."""

    attrs: Mapping[str, Any]
    taps: tuple[int, int]

    @property
    def strides(self) -> tuple[int, int]:
        return self.attrs["strides"][1], self.attrs["strides"][2]

    @property
    def skips(self) -> bool:
        """True for a 1x1 convolution with strides and without padding."""
        return self.taps == (1, 1) and self.strides != (1, 1) and not any(self.attrs["explicit_paddings"])


def propagate_strides(graph: Graph, context: PassContext) -> Graph:
    """Move strides one producer further in each round, until no round changes the graph."""
    while True:
        view = GraphView(graph, context)
        known = {node.name: found for node in graph if node.op in CONVOLUTIONS
                 if (found := _strided(view, node)) is not None}
        edits: Edits = {}
        for source in dict.fromkeys(graph[name].inputs[0] for name, found in known.items() if found.skips):
            subsampling = _Subsampling(view, known)
            if subsampling.starts_at(source) and edits.keys().isdisjoint(subsampling.edits):
                edits |= subsampling.edits
        if not edits:
            return graph
        graph = view.edited(edits.values())


def _strided(view: GraphView, node: Node) -> Strided | None:
    entry, filters = view.resolve(node), view.constant(node.inputs[1]) if len(node.inputs) == 2 else None
    if entry is None or filters is None or filters.shape is None or len(filters.shape) != 4:
        return None
    attrs = entry.attrs
    if attrs["data_format"] != "NHWC" or attrs["T"] not in FLOATS or attrs["strides"][::3] != (1, 1):
        return None
    if len(attrs["strides"]) != 4 or len(attrs["dilations"]) != 4:
        return None  # its metadata function refuses it
    return Strided(attrs, (filters.shape[0], filters.shape[1]))


class _Subsampling:
    """Moves the strides of one tensor's consumers to its producers. `edits` has the changed nodes."""

    def __init__(self, view: GraphView, known: Mapping[str, Strided]) -> None:
        self.edits: Edits = {}
        self._view = view
        self._known = known

    def starts_at(self, source: Input) -> bool:
        """Fill `edits`, and return True, where all consumers skip the same pixels and a producer saves work."""
        consumers = [node for node, _ in self._view.consumers[source.node]]
        found = [self._known.get(node.name) for node in consumers]
        if source.index or not all(each is not None and each.skips for each in found):
            return False
        strides = {each.strides for each in found if each is not None}
        names = {node.name for node in consumers}
        if len(strides) != 1 or not self._gains(source, names):
            return False
        for node in consumers:
            self.edits[node.name] = node.replace(attrs={"strides": [1, 1, 1, 1]})
        self._thin(source, strides.pop(), names)
        return True

    def _gains(self, source: Input, consumers: set[str]) -> bool:
        """True where a convolution is reached whose only consumers are on the way."""
        node = self._view.graph[source.node]
        if not self._is_theirs(source, consumers):
            return False
        if node.op in CONVOLUTIONS:
            return self._padding(node) is not None
        whole = self._whole(node)
        return whole is not None and any(self._gains(each, {node.name}) for each in whole)

    def _is_theirs(self, source: Input, consumers: set[str]) -> bool:
        node = self._view.graph[source.node]
        return (source.index == 0 and self._view.is_free(node)
                and all(consumer.name in consumers for consumer, _ in self._view.consumers[node.name]))

    def _whole(self, node: Node) -> list[Input] | None:
        """The inputs of an elementwise op that have its rows and columns. None for other ops, and where
        shapes are not known."""
        if node.op not in POINTWISE or self._view.resolve(node) is None:
            return None
        if len(node.inputs) == 1 or node.op == "BiasAdd":
            return list(node.inputs[:1])
        shapes = [self._view.shape(each) for each in node.inputs]
        sides = [((1,) * (4 - len(shape)) + shape)[SPATIAL]
                 for shape in shapes if shape is not None and len(shape) <= 4]
        sizes = {*sides} - {(1, 1)}
        if len(sides) != len(shapes) or len(sizes) != 1 or None in next(iter(sizes)):
            return None
        return [each for each, side in zip(node.inputs, sides, strict=True) if side in sizes]

    def _padding(self, node: Node) -> list[int] | None:
        """The explicit padding of a convolution, None where it depends on the strides."""
        found = self._known.get(node.name)
        if found is None:
            return None
        if found.attrs["padding"] != "SAME":
            return list(found.attrs["explicit_paddings"])
        if found.taps != (1, 1) and found.strides != (1, 1):
            return None
        dilations = found.attrs["dilations"][SPATIAL]
        sums = [(taps - 1) * dilation for taps, dilation in zip(found.taps, dilations, strict=True)]
        return [0, 0, *(part for total in sums for part in (total // 2, total - total // 2)), 0, 0]

    def _thin(self, source: Input, strides: tuple[int, int], consumers: set[str]) -> Input:
        """The tensor reduced to every strides-th row and column."""
        node = self._view.graph[source.node]
        whole = self._whole(node) if self._is_theirs(source, consumers) else None
        if whole is not None:
            inputs = [self._thin(each, strides, {node.name}) if each in whole else each for each in node.inputs]
            self.edits[node.name] = node.replace(inputs=inputs)
            return source
        paddings = self._padding(node) if self._is_theirs(source, consumers) else None
        if paddings is None:
            return self._pooled(source, strides)
        down, right = (a * b for a, b in zip(self._known[node.name].strides, strides, strict=True))
        attrs: dict[str, Any] = {"strides": [1, down, right, 1]}
        if any(paddings):
            attrs |= {"padding": b"EXPLICIT", "explicit_paddings": paddings}
        self.edits[node.name] = node.replace(attrs=attrs)
        return source

    def _pooled(self, source: Input, strides: tuple[int, int]) -> Input:
        node = self._view.graph[source.node]
        name = self._view.new_name(f"{node.name}/thinned")
        consumer = next(iter(self._known.values()))
        self.edits[name] = placed_like(Node(name, "AvgPool", [source], attrs={
            "T": consumer.attrs["T"], "ksize": [1, 1, 1, 1], "strides": [1, *strides, 1], "padding": b"VALID",
            "data_format": b"NHWC"}), node)
        return Input(name)
