"""Pass `duplicates`: common subexpression elimination merges nodes with equal op, place, attributes,
inputs and control edges.

NASNet, for example, has one Relu for each consumer of an earlier cell. The pass runs after layers have absorbed their
padding and scaling, because a Pad with two consumers cannot be absorbed.
"""

from __future__ import annotations

from heald.api import Graph, Node, PassContext, topological_order

from ..graph_view import GraphView
from .constants import CONTROL_FLOW_OPS


def eliminate_common_subexpressions(graph: Graph, context: PassContext) -> Graph:
    view = GraphView(graph, context)
    first_of: dict[tuple[object, ...], Node] = {}  # by op, place, attributes and inputs
    merged: dict[str, str] = {}  # from a removed node to the node that replaces it
    changed: list[Node] = []
    for node in topological_order(graph):
        inputs = [source._replace(node=merged.get(source.node, source.node)) for source in node.inputs]
        equal = None
        if inputs and node.op not in CONTROL_FLOW_OPS:
            key = (node.op, node.device, frozenset(node.controls))
            first = first_of.setdefault((*key, frozenset(node.attrs.items()), *inputs), node)
            equal = None if first is node else first
        if equal is not None and view.is_replaceable(node) and _is_pure(view, node):
            merged[node.name] = equal.name
        elif tuple(inputs) != node.inputs:
            changed.append(node.replace(inputs=inputs))
    return view.with_edits(changed) if merged else graph


def _is_pure(view: GraphView, node: Node) -> bool:
    """True for a node without state and side effects."""
    entry = view.resolve(node)
    return entry is not None and not entry.op.stateful and not any(map(view.is_reference, node.inputs))
