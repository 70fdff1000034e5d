"""Pass `duplicates`: of nodes that do the same to the same tensors one stays. (NASNet has a Relu for each of those who
take what an earlier cell gives.)

It runs when layers have taken in what only they take: padding that two take would be theirs no more.
"""

from __future__ import annotations

from weft.api import Graph, Node, PassContext, topological_order

from .constants import STEERING
from .view import View


def merged(graph: Graph, context: PassContext) -> Graph:
    view = View(graph, context)
    alike: dict[tuple[object, ...], Node] = {}  # by op, place, attributes and inputs
    twins: dict[str, str] = {}  # a node that goes, and the one in its place
    changed: list[Node] = []
    for node in topological_order(graph):
        inputs = [source._replace(node=twins.get(source.node, source.node)) for source in node.inputs]
        twin = None
        if inputs and not node.controls and node.op not in STEERING:
            first = alike.setdefault((node.op, node.device, frozenset(node.attrs.items()), *inputs), node)
            twin = None if first is node else first
        if twin is not None and view.is_free(node) and _does_nothing_else(view, node):
            twins[node.name] = twin.name
        elif tuple(inputs) != node.inputs:
            changed.append(node.replace(inputs=inputs))
    return view.edited(changed) if twins else graph


def _does_nothing_else(view: View, node: Node) -> bool:
    """Whether the node gives the same whenever it is run, and that is all it does."""
    entry = view.resolve(node)
    return entry is not None and not entry.op.stateful and not any(map(view.is_reference, node.inputs))
