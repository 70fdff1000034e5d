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

CONTROL_FLOW = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"})  # outputs may be dead
IDENTITIES = frozenset({"Identity", "PreventGradient", "Snapshot", "StopGradient"})


def fold_constants(graph: Graph, context: PassContext) -> Graph:
    view = GraphView(_freed(graph, context), context)
    settled = _settled(view)
    found: dict[Input, Node] = {}
    changed: list[Node] = []
    for node in view.graph:
        if node.name in settled:
            continue
        inputs = [_constant(view, settled, source, found) for source in node.inputs]
        controls = [name for name in node.controls if name not in settled]
        if tuple(inputs) != node.inputs or len(controls) < len(node.controls):
            changed.append(node.replace(inputs=inputs, controls=controls))
    return _freed(view.edited([*found.values(), *changed]), context)


def _freed(graph: Graph, context: PassContext) -> Graph:
    """The graph without control edges that order nothing, and without nodes that nothing needs then."""
    freed = without_idle_controls(graph)
    return graph if freed is graph else pruned(freed, context.kept)


def _settled(view: GraphView) -> dict[str, Node]:
    """The nodes with constant inputs only, all of whose outputs are known."""
    settled: dict[str, Node] = {}
    for node in topological_order(view.graph):
        if not node.inputs or node.controls or node.op in CONTROL_FLOW or view.is_kept(node):
            continue
        needs = all(source.node in settled or view.constant(source) is not None for source in node.inputs)
        if needs and (node.op in IDENTITIES or view.is_known(node)):
            settled[node.name] = node
    return settled


def _constant(view: GraphView, settled: dict[str, Node], source: Input, found: dict[Input, Node]) -> Input:
    """The replacement of a tensor: for an output of a settled node its constant, which the function adds to `found`;
    for any other tensor itself."""
    while source.node in settled and settled[source.node].op in IDENTITIES:
        source = settled[source.node].inputs[0]
    if source.node not in settled:
        return source
    if source not in found:
        node = settled[source.node]
        name = view.new_name(f"{node.name}/{source.index}") if source.index else node.name
        found[source] = placed_like(constant(name, view.value(source)), node)
    return Input(found[source].name)
