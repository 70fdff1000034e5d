"""Pass `scales`: multiplications and additions of constants are folded into layers, or into each other.

Behind a linear layer they go into its weights and a BiasAdd. In front of a convolution they go into its weights and the
BiasAdd behind it, also past a Relu (`relu_factors`). Elsewhere a chain of them becomes one Mul and one AddV2.
"""

from __future__ import annotations

from heald.api import Graph, Node, PassContext, constant, placed_like

from .. import linear_layers
from ..affine import Affine, bias_step, composed_parts, rounded_to_dtype, scaling_nodes, scaling_step
from ..graph_view import Array, GraphView, asks_for_same_place
from ..linear_layers import Layer
from ..relu_factors import move_factors


def fold_scaling(graph: Graph, context: PassContext) -> Graph:
    graph = _merge_scaling_chains(linear_layers.fold_affine(graph, context, _scaling_or_bias), context)
    return _fold_into_convolutions(move_factors(graph, context), context)


def _scaling_or_bias(view: GraphView, node: Node) -> Affine | None:
    return bias_step(view, node) or scaling_step(view, node)


def _merge_scaling_chains(graph: Graph, context: PassContext) -> Graph:
    """The graph with one Mul and one AddV2 for each longer chain of scalings."""
    view = GraphView(graph, context)
    steps = {node.name: step for node in graph if (step := scaling_step(view, node)) is not None}
    changed: list[Node] = []
    removed: list[str] = []
    for step in steps.values():
        if not _follows(view, steps, step):
            chain = _chain(view, steps, step)
            nodes = _merged_chain(view, chain)
            changed += nodes
            removed += {part.node.name for part in chain if nodes} - {node.name for node in nodes}
    return view.with_edits(changed, removed)


def _follows(view: GraphView, steps: dict[str, Affine], step: Affine) -> bool:
    before = steps.get(step.source.node)
    return (before is not None and view.is_free(before.node) and view.only_consumer(before.node) is step.node
            and not step.node.controls and asks_for_same_place(before.node, step.node))


def _chain(view: GraphView, steps: dict[str, Affine], first: Affine) -> list[Affine]:
    chain = [first]
    while (consumer := view.only_consumer(chain[-1].node)) is not None:
        step = steps.get(consumer.name)
        if step is None or step.source.node != chain[-1].node.name or not _follows(view, steps, step):
            break
        chain.append(step)
    return chain


def _merged_chain(view: GraphView, chain: list[Affine]) -> list[Node]:
    """Fewer nodes that compute the same as the chain; an empty list where that is impossible."""
    if len(chain) < 2 or chain[0].node.controls:
        return []
    try:
        parts = composed_parts(chain)
    except ValueError:  # the constants do not broadcast: running the nodes raises that
        return []
    largest = max(values.size for step in chain for values in (step.factor, step.shift) if values is not None)
    needed = [values for values in parts if values is not None]
    if len(needed) >= len(chain) or any(values.size > largest for values in needed):
        return []
    return scaling_nodes(view, chain[0].source, parts, chain[-1].node, chain[0].node.name) or []


def _fold_into_convolutions(graph: Graph, context: PassContext) -> Graph:
    """The graph with scalings of convolutions' images folded into the weights."""
    view = GraphView(graph, context)
    changed: list[Node] = []
    for node in graph:
        layer = linear_layers.linear_layer(view, node) if node.op in ("Conv2D", "DepthwiseConv2dNative") else None
        if layer is not None:
            changed += _folded_convolution(view, layer)
    return view.with_edits(changed)


def _folded_convolution(view: GraphView, layer: Layer) -> list[Node]:
    """The convolution with the scalings in front of it folded into weights and bias. A shift is folded only where
    nothing is padded: elsewhere it differs at the border."""
    added = _bias_behind(view, layer) if layer.entry.attrs["padding"] == "VALID" else None
    chain = _scalings_before(view, layer, shifts=added is not None)
    if not chain:
        return []
    node, new_nodes = layer.node, []
    factor, shift = composed_parts(chain)
    if factor is not None:
        weights = layer.scaled(factor, layer.kind.depth)
        if weights is None:
            return []
        new_nodes.append(placed_like(constant(layer.weights_name, weights), view.graph[layer.weights_name]))
    if shift is not None:
        assert added is not None
        assert added.shift is not None
        numbers = rounded_to_dtype(added.shift.reshape(-1) + layer.response(shift), layer.entry.attrs["T"])
        if numbers is None:
            return []
        new_nodes += _with_bias(view, added, numbers)
    return [*new_nodes, node.replace(inputs=[chain[0].source, *node.inputs[1:]])]


def _bias_behind(view: GraphView, layer: Layer) -> Affine | None:
    consumer = view.only_consumer(layer.node) if view.is_free(layer.node) else None
    step = None if consumer is None else bias_step(view, consumer)
    return step if step is not None and linear_layers.step_by_output_channel(view, layer, step) is not None else None


def _with_bias(view: GraphView, added: Affine, numbers: Array) -> list[Node]:
    name = added.node.inputs[1].node
    if view.only_consumer(view.graph[name]) is not None:
        return [placed_like(constant(name, numbers), view.graph[name])]
    new = placed_like(constant(view.new_name(f"{added.node.name}/bias"), numbers), added.node)
    return [new, added.node.replace(inputs=[added.node.inputs[0], new.name])]


def _scalings_before(view: GraphView, layer: Layer, *, shifts: bool) -> list[Affine]:
    """The scalings in front of a convolution, by channel, in order of execution; without `shifts` factors only."""
    chain: list[Affine] = []
    source, depth = layer.node.inputs[0], layer.weights.shape[2]
    while True:
        node = view.graph[source.node]
        step = scaling_step(view, node) if view.is_free(node) and view.only_consumer(node) is not None else None
        if step is None or (step.shift is not None and not shifts) or not asks_for_same_place(node, layer.node):
            return chain[::-1]
        channel_step = layer.step_by_channel(step, depth)
        if channel_step is None or not _has_channels(view, layer, step, depth):
            return chain[::-1]
        chain.append(channel_step)
        source = step.source


def _has_channels(view: GraphView, layer: Layer, step: Affine, depth: int) -> bool:
    """True where broadcasting cannot change the rank or the channels of the scaled tensor."""
    if all(values is None or values.ndim == 0 for values in (step.factor, step.shift)):
        return True
    shape = view.shape(step.source)
    return shape is not None and len(shape) == layer.rank and shape[layer.axis] == depth
