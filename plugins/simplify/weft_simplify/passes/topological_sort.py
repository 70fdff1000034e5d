"""Pass `topological-sort`, on request: each node after its sources, in the graph and in its functions.

The pass preserves everything but the order of nodes. It is idempotent: an order that fits stays. Edges out of
NextIteration, which close the loops of TensorFlow 1, do not count.
"""

from __future__ import annotations

from weft.api import Graph, PassContext, topological_order


def sort_topologically(graph: Graph, _: PassContext) -> Graph:
    """The graph in topological order. Raises InvalidArgument for a cycle."""
    functions = [function.replace(nodes=order) for function in graph.functions.values()
                 if (order := topological_order(function.nodes)) != [*function.nodes.values()]]
    order = topological_order(graph)
    if order != [*graph.nodes.values()]:
        graph = graph.with_nodes(order)
    return graph.replace(functions=functions) if functions else graph
