"""The pass: the second of two Negs in a row becomes an Identity of the first one's input.

The second Neg keeps its name, so a fetch of it still finds its value. The first is pruned if nothing else needs it.
"""

from __future__ import annotations

from heald.api import Graph, Node, PassContext


def remove_double_negation(graph: Graph, context: PassContext) -> Graph:
    changed = [node.replace(op="Identity", inputs=[graph.nodes[node.inputs[0].node].inputs[0]])
               for node in graph if _negates_a_negation(node, graph, context)]
    return graph.replace(nodes=changed)


def _negates_a_negation(node: Node, graph: Graph, context: PassContext) -> bool:
    """False where the first Neg is kept: a run may feed it. False where it waits for other nodes."""
    if node.op != "Neg":
        return False
    first = graph.nodes[node.inputs[0].node]
    return first.op == "Neg" and first.name not in context.kept and not first.controls
