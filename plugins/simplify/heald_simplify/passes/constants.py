"""Pass `constants`: constant folding replaces nodes whose inputs are all constants by their results.

A result is folded only if it is small, or no larger than its inputs. A control edge from a constant orders nothing, so
the pass removes such edges. A node that cannot be computed stays, and raises when it runs.
"""

from __future__ import annotations

from heald.api import (
    Graph,
    Input,
    Node,
    PassContext,
    constant,
    placed_like,
    pruned,
    topological_order,
    without_idle_controls,
)

from ..graph_view import GraphView

CONTROL_FLOW_OPS = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"})  # outputs may be dead
IDENTITY_OPS = frozenset({"Identity", "PreventGradient", "Snapshot", "StopGradient"})


def fold_constants(graph: Graph, context: PassContext) -> Graph:
    view = GraphView(_without_idle_nodes(graph, context), context)
    foldable = _foldable_nodes(view)
    constants: dict[Input, Node] = {}
    changed: list[Node] = []
    for node in view.graph:
        if node.name in foldable:
            continue
        inputs = [_constant_or_tensor(view, foldable, source, constants) for source in node.inputs]
        controls = [name for name in node.controls if name not in foldable]
        if tuple(inputs) != node.inputs or len(controls) < len(node.controls):
            changed.append(node.replace(inputs=inputs, controls=controls))
    return _without_idle_nodes(view.with_edits([*constants.values(), *changed]), context)


def _without_idle_nodes(graph: Graph, context: PassContext) -> Graph:
    """The graph without control edges that order nothing, and without nodes that nothing needs then."""
    unordered = without_idle_controls(graph)
    return graph if unordered is graph else pruned(unordered, context.kept)


def _foldable_nodes(view: GraphView) -> dict[str, Node]:
    """The nodes with constant inputs only, all of whose outputs are known."""
    foldable: dict[str, Node] = {}
    for node in topological_order(view.graph):
        is_ordered = any(name not in foldable for name in node.controls)  # a foldable node becomes a constant
        if not node.inputs or is_ordered or node.op in CONTROL_FLOW_OPS or view.is_kept(node):
            continue
        needs = all(source.node in foldable or view.constant(source) is not None for source in node.inputs)
        if needs and (node.op in IDENTITY_OPS or view.is_known(node)):
            foldable[node.name] = node
    return foldable


def _constant_or_tensor(view: GraphView, foldable: dict[str, Node], source: Input,
                        constants: dict[Input, Node]) -> Input:
    """The constant of a foldable node's output, which the function adds to `constants`; any other tensor itself."""
    while source.node in foldable and foldable[source.node].op in IDENTITY_OPS:
        source = foldable[source.node].inputs[0]
    if source.node not in foldable:
        return source
    if source not in constants:
        node = foldable[source.node]
        name = view.new_name(f"{node.name}/{source.index}") if source.index else node.name
        constants[source] = placed_like(constant(name, view.value(source)), node)
    return Input(constants[source].name)
