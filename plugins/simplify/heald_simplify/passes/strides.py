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


class StridedConvolution(NamedTuple):
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
        convolutions = {node.name: convolution for node in graph if node.op in CONVOLUTIONS
                        if (convolution := _convolution_of_node(view, node)) is not None}
        edits: Edits = {}
        skipping = [name for name, convolution in convolutions.items() if convolution.skips]
        for source in dict.fromkeys(graph[name].inputs[0] for name in skipping):
            subsampling = _Subsampling(view, convolutions)
            if subsampling.propagate_from(source) and edits.keys().isdisjoint(subsampling.edits):
                edits |= subsampling.edits
        if not edits:
            return graph
        graph = view.with_edits(edits.values())


def _convolution_of_node(view: GraphView, node: Node) -> StridedConvolution | None:
    entry, filters = view.resolve(node), view.constant(node.inputs[1]) if len(node.inputs) == 2 else None
    if entry is None or filters is None or filters.shape is None or len(filters.shape) != 4:
        return None
    attrs = entry.attrs
    if attrs["data_format"] != "NHWC" or attrs["T"] not in FLOATS or attrs["strides"][::3] != (1, 1):
        return None
    if len(attrs["strides"]) != 4 or len(attrs["dilations"]) != 4:
        return None  # its metadata function refuses it
    return StridedConvolution(attrs, (filters.shape[0], filters.shape[1]))


class _Subsampling:
    """Moves the strides of one tensor's consumers to its producers. `edits` has the changed nodes."""

    def __init__(self, view: GraphView, convolutions: Mapping[str, StridedConvolution]) -> None:
        self.edits: Edits = {}
        self._view = view
        self._convolutions = convolutions

    def propagate_from(self, source: Input) -> bool:
        """Fill `edits`, and return True, where all consumers skip the same pixels and a producer saves work."""
        consumers = [node for node, _ in self._view.consumers[source.node]]
        readers = [self._convolutions.get(node.name) for node in consumers]
        if source.index or not all(reader is not None and reader.skips for reader in readers):
            return False
        strides = {reader.strides for reader in readers if reader is not None}
        names = {node.name for node in consumers}
        if len(strides) != 1 or not self._reaches_convolution(source, names):
            return False
        for node in consumers:
            self.edits[node.name] = node.replace(attrs={"strides": [1, 1, 1, 1]})
        self._subsample(source, strides.pop(), names)
        return True

    def _reaches_convolution(self, source: Input, consumers: set[str]) -> bool:
        """True where a convolution is reached whose only consumers are on the way."""
        node = self._view.graph[source.node]
        if not self._is_read_only_by(source, consumers):
            return False
        if node.op in CONVOLUTIONS:
            return self._padding(node) is not None
        full_size_inputs = self._full_size_inputs(node)
        return full_size_inputs is not None and any(self._reaches_convolution(tensor, {node.name})
                                                    for tensor in full_size_inputs)

    def _is_read_only_by(self, source: Input, consumers: set[str]) -> bool:
        node = self._view.graph[source.node]
        return (source.index == 0 and self._view.is_free(node)
                and all(consumer.name in consumers for consumer, _ in self._view.consumers[node.name]))

    def _full_size_inputs(self, node: Node) -> list[Input] | None:
        """The inputs of an elementwise op that have its rows and columns. None for other ops, and where
        shapes are not known."""
        if node.op not in POINTWISE or self._view.resolve(node) is None:
            return None
        if len(node.inputs) == 1 or node.op == "BiasAdd":
            return list(node.inputs[:1])
        shapes = [self._view.shape(tensor) for tensor in node.inputs]
        sides = [((1,) * (4 - len(shape)) + shape)[SPATIAL]
                 for shape in shapes if shape is not None and len(shape) <= 4]
        sizes = {*sides} - {(1, 1)}
        if len(sides) != len(shapes) or len(sizes) != 1 or None in next(iter(sizes)):
            return None
        return [tensor for tensor, side in zip(node.inputs, sides, strict=True) if side in sizes]

    def _padding(self, node: Node) -> list[int] | None:
        """The explicit padding of a convolution, None where it depends on the strides."""
        convolution = self._convolutions.get(node.name)
        if convolution is None:
            return None
        if convolution.attrs["padding"] != "SAME":
            return list(convolution.attrs["explicit_paddings"])
        if convolution.taps != (1, 1) and convolution.strides != (1, 1):
            return None
        dilations = convolution.attrs["dilations"][SPATIAL]
        sums = [(taps - 1) * dilation for taps, dilation in zip(convolution.taps, dilations, strict=True)]
        return [0, 0, *(part for total in sums for part in (total // 2, total - total // 2)), 0, 0]

    def _subsample(self, source: Input, strides: tuple[int, int], consumers: set[str]) -> Input:
        """The tensor reduced to every strides-th row and column."""
        node = self._view.graph[source.node]
        full_size_inputs = self._full_size_inputs(node) if self._is_read_only_by(source, consumers) else None
        if full_size_inputs is not None:
            inputs = [self._subsample(tensor, strides, {node.name}) if tensor in full_size_inputs else tensor
                      for tensor in node.inputs]
            self.edits[node.name] = node.replace(inputs=inputs)
            return source
        paddings = self._padding(node) if self._is_read_only_by(source, consumers) else None
        if paddings is None:
            return self._subsample_by_pool(source, strides)
        down, right = (a * b for a, b in zip(self._convolutions[node.name].strides, strides, strict=True))
        attrs: dict[str, Any] = {"strides": [1, down, right, 1]}
        if any(paddings):
            attrs |= {"padding": b"EXPLICIT", "explicit_paddings": paddings}
        self.edits[node.name] = node.replace(attrs=attrs)
        return source

    def _subsample_by_pool(self, source: Input, strides: tuple[int, int]) -> Input:
        node = self._view.graph[source.node]
        name = self._view.new_name(f"{node.name}/thinned")
        consumer = next(iter(self._convolutions.values()))
        self.edits[name] = placed_like(Node(name, "AvgPool", [source], attrs={
            "T": consumer.attrs["T"], "ksize": [1, 1, 1, 1], "strides": [1, *strides, 1], "padding": b"VALID",
            "data_format": b"NHWC"}), node)
        return Input(name)
