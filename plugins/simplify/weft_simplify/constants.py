"""Pass `constants`: what needs nothing but constants is computed once, and becomes a constant.

A result is kept only if it is small, or no larger than what it is made from. Who waits for a constant waits for
nothing, so those control edges go. What cannot be computed stays as it is, and fails when it is run.
"""

from __future__ import annotations

from weft.api import (
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

from .view import View

STEERING = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"})  # what they give may be dead
SAME = frozenset({"Identity", "PreventGradient", "Snapshot", "StopGradient"})  # they give what they take


def evaluated(graph: Graph, context: PassContext) -> Graph:
    view = View(_freed(graph, context), context)
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
    """The graph without control edges from what waits for nothing, and without what nobody needs then."""
    freed = without_idle_controls(graph)
    return graph if freed is graph else pruned(freed, context.kept)


def _settled(view: View) -> dict[str, Node]:
    """The nodes whose outputs are all known and which need constants alone."""
    settled: dict[str, Node] = {}
    for node in topological_order(view.graph):
        if not node.inputs or node.controls or node.op in STEERING or view.is_kept(node):
            continue
        needs = all(source.node in settled or view.constant(source) is not None for source in node.inputs)
        if needs and (node.op in SAME or view.is_known(node)):
            settled[node.name] = node
    return settled


def _constant(view: View, settled: dict[str, Node], source: Input, found: dict[Input, Node]) -> Input:
    """What to take in the place of a tensor: of a settled node, the constant that stands for it, which `found` has."""
    while source.node in settled and settled[source.node].op in SAME:
        source = settled[source.node].inputs[0]
    if source.node not in settled:
        return source
    if source not in found:
        node = settled[source.node]
        name = view.new_name(f"{node.name}/{source.index}") if source.index else node.name
        found[source] = placed_like(constant(name, view.value(source)), node)
    return Input(found[source].name)
