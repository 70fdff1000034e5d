"""Linear layers: products with constant weights, into which per-channel factors and shifts can be folded."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Graph, Input, Node, PassContext, Resolved, TensorValue, constant, dtypes, placed_like

from .affine import Affine, composed_parts, is_of_floats, rounded_to_dtype
from .graph_view import Array, GraphView, asks_for_same_place

WEIGHTS = 1  # index of the weights among a layer's inputs
LARGEST_SPLAT_BYTES = 64 << 10  # bytes


class Kind(NamedTuple):
    """Axes of an op's weights: `filters` are the output channels, `depth` the input channels."""

    filters: tuple[int, ...]
    depth: tuple[int, ...]


KINDS = {
    "Conv2D": Kind((3,), (2,)),
    "Conv2DBackpropInput": Kind((2,), (3,)),
    "DepthwiseConv2dNative": Kind((2, 3), (2,)),
    "MatMul": Kind((1,), (0,)),
}
FORMATS = ("NHWC", "NCHW")


class Layer(NamedTuple):
    """A node of an op in KINDS that is the only consumer of its weights."""

    node: Node
    entry: Resolved
    kind: Kind
    weights: TensorValue

    @property
    def rank(self) -> int:
        return len(self.weights.shape)

    @property
    def channels(self) -> int:
        return prod(self.weights.shape[axis] for axis in self.kind.filters)

    @property
    def data_format(self) -> str:
        data_format: str = self.entry.attrs.get("data_format", "NHWC")
        return data_format

    @property
    def axis(self) -> int:
        """The channel axis of input and output, counted from the last axis."""
        return -3 if self.data_format == "NCHW" else -1

    @property
    def weights_name(self) -> str:
        return self.node.inputs[WEIGHTS].node

    def response(self, shift: Array) -> Array:
        """The sum that a shift of each input channel adds to each output channel, without padding. [channels]."""
        shape = [length if axis in self.kind.depth else 1 for axis, length in enumerate(self.weights.shape)]
        others = tuple(axis for axis in range(self.rank) if axis not in self.kind.filters)
        response: Array = (self.weights.array() * shift.reshape(shape)).sum(axis=others).reshape(-1)
        return response

    def step_by_channel(self, step: Affine, channels: int) -> Affine | None:
        """The node with one factor and one shift a channel, as vectors; None where they differ within a channel."""
        parts = [None if values is None else self._vector(values, channels) for values in (step.factor, step.shift)]
        fits = [part is None for part in parts] == [values is None for values in (step.factor, step.shift)]
        return step._replace(factor=parts[0], shift=parts[1]) if fits else None

    def _vector(self, values: Array, channels: int) -> Array | None:
        shape = (1,) * (self.rank - values.ndim) + values.shape
        axis = len(shape) + self.axis
        if len(shape) > self.rank or axis < 0 or prod(shape) != shape[axis] or shape[axis] not in (1, channels):
            return None
        return np.broadcast_to(values.reshape(-1), channels)

    def scaled(self, factor: Array, axes: tuple[int, ...]) -> TensorValue | None:
        """The weights times `factor`, which has one element for each index of `axes`. Packing does the multiplication.

        None where a product overflows or, in float16, underflows. In wider floats an underflow is negligible beside the
        other weights.
        """
        dtype, weights = self.entry.attrs["T"], self.weights
        shape = [length if axis in axes else 1 for axis, length in enumerate(weights.shape)]
        if dtype is dtypes.float16:
            product = rounded_to_dtype(weights.array() * factor.reshape(shape), dtype)
            return None if product is None else TensorValue(product)
        with np.errstate(all="ignore"):
            factors = factor.astype(dtype.numpy).reshape(shape)
            largest_factor, array = np.abs(factors).max(), weights.array()
            fits = np.isfinite(largest_factor * magnitude_bound(array)) or np.isfinite(largest_factor * _largest(array))
        return TensorValue.scaled(weights, factors) if fits else None


def magnitude_bound(array: Array) -> Any:
    """An upper bound of the magnitudes, twice as fast as the maximum: it has every bit that is set in any element, and
    the bits of floats, signs aside, are ordered like the floats. It may be NaN or infinite where no element is."""
    bits = np.bitwise_or.reduce(array.view(f"u{array.itemsize}"), axis=None)
    return np.abs(bits.view(array.dtype))


def _largest(array: Array) -> Any:
    """The largest magnitude, NaN if any element is NaN."""
    return np.maximum(array.max(), -array.min())


def linear_layer(view: GraphView, node: Node) -> Layer | None:
    """The node as a layer, None where it is no linear layer with constant weights of its own."""
    kind = KINDS.get(node.op)
    entry = view.resolve(node) if kind is not None and is_of_floats(view, node) else None
    if kind is None or entry is None or entry.attrs.get("data_format", "NHWC") not in FORMATS:
        return None
    source = node.inputs[WEIGHTS]
    weights = view.constant(source)
    if weights is None or not weights.size or view.only_consumer(view.graph[source.node]) is None:
        return None
    array = view.array(source) if weights.scaling is None else None
    if weights.scaling is None and (array is None or (0 in array.strides and array.nbytes > LARGEST_SPLAT_BYTES)):
        return None  # a splat takes no memory; scaled it would
    if len(weights.shape) != (2 if node.op == "MatMul" else 4):
        return None
    turned = node.op == "MatMul" and entry.attrs["transpose_b"]
    layer = Layer(node, entry, Kind(kind.depth, kind.filters) if turned else kind, weights)
    return None if node.op == "Conv2DBackpropInput" and _has_groups(view, layer) else layer


def _has_groups(view: GraphView, layer: Layer) -> bool:
    """True where the output may have more channels than the weights."""
    shape = view.shape(Input(layer.node.name))
    return shape is None or len(shape) != layer.rank or shape[layer.axis] != layer.channels


Reader = Callable[[GraphView, Node], Affine | None]


def fold_affine(graph: Graph, context: PassContext, read: Reader) -> Graph:
    """The graph with the affine nodes behind layers, as `read` recognises them, folded into weights and a BiasAdd."""
    view = GraphView(graph, context)
    changed: list[Node] = []
    removed: list[str] = []
    for node in graph:
        layer = linear_layer(view, node)
        chain = [] if layer is None else _affine_chain(view, layer, read)
        if layer is None or (len(chain) < 2 and all(step.factor is None for step in chain)):
            continue
        nodes = _folded_layer_nodes(view, layer, chain)
        if nodes:
            changed += nodes
            removed += {layer.node.name, *(step.node.name for step in chain)} - {new.name for new in nodes}
    return view.with_edits(changed, removed)


def _affine_chain(view: GraphView, layer: Layer, read: Reader) -> list[Affine]:
    """The chain of affine nodes behind a layer, by channel. Each is the only consumer of the node before it."""
    chain: list[Affine] = []
    node = layer.node
    while view.is_free(node) and (consumer := view.only_consumer(node)) is not None:
        step = read(view, consumer) if asks_for_same_place(consumer, layer.node) and not consumer.controls else None
        follows = step is not None and step.source.node == node.name
        channel_step = step_by_output_channel(view, layer, step) if step is not None and follows else None
        if channel_step is None:
            break
        chain.append(channel_step)
        node = consumer
    return chain


def step_by_output_channel(view: GraphView, layer: Layer, step: Affine) -> Affine | None:
    """The node with one factor and one shift for each output channel of the layer; None where the channels differ."""
    entry = view.resolve(step.node)
    assert entry is not None
    data_format = entry.attrs.get("data_format")
    sizes = {values.size for values in (step.factor, step.shift) if values is not None}
    if data_format is not None and (data_format != layer.data_format or sizes != {layer.channels}):
        return None
    return layer.step_by_channel(step, layer.channels)


def _folded_layer_nodes(view: GraphView, layer: Layer, chain: list[Affine]) -> list[Node]:
    """The layer with scaled weights, and a BiasAdd with the name of the chain's last node. Empty on overflow."""
    factor, shift = composed_parts(chain)
    node, last, new_nodes = layer.node, chain[-1].node, []
    if factor is not None:
        weights = layer.scaled(factor, layer.kind.filters)
        if weights is None:
            return []
        new_nodes.append(placed_like(constant(layer.weights_name, weights), view.graph[layer.weights_name]))
    if shift is None:
        return [*new_nodes, node.replace(name=last.name)]
    numbers = rounded_to_dtype(shift, layer.entry.attrs["T"])
    if numbers is None:
        return []
    name = next((source.node for step in reversed(chain) if step.shift is not None for source in step.constants[-1:]
                 if view.only_consumer(view.graph[source.node]) is not None), None)
    bias = constant(name or view.new_name(f"{last.name}/bias"), numbers)
    added = Node(last.name, "BiasAdd", [node.name, bias.name],
                 attrs={"T": layer.entry.attrs["T"], "data_format": layer.data_format})
    return [*new_nodes, node, placed_like(bias, node), placed_like(added, node)]
