"""Pass `topological-sort`, on request: each node after its sources, in the graph and in its functions.

The order is that of TFG's pass. It takes the nodes that are ready in the order of the file. Each is followed by the
nodes that it makes ready, and those by theirs: first the nodes behind its control edges, then the consumers of its last
output, of the output before, and so on. Edges out of NextIteration, which close the loops of TensorFlow 1, do not
count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from heald.api import Graph, Node, PassContext, topological_order

_BACK = ("NextIteration", "RefNextIteration")
_CONTROL = (1, "", 0)  # greater than the key of any output


def sort_topologically(graph: Graph, _: PassContext) -> Graph:
    """The graph in topological order. Raises InvalidArgument for a cycle."""
    functions = [function.replace(nodes=order) for function in graph.functions.values()
                 if (order := _nodes_in_order(function.nodes)) != [*function.nodes.values()]]
    order = _nodes_in_order(graph.nodes)
    if order != [*graph.nodes.values()]:
        graph = graph.with_nodes(order)
    return graph.replace(functions=functions) if functions else graph


def _nodes_in_order(nodes: Mapping[str, Node]) -> list[Node]:
    topological_order(nodes)  # raises the error of a cycle
    behind: dict[str, dict[str, tuple[int, str, int]]] = {name: {} for name in nodes}
    missing: Counter[str] = Counter()  # by node: its sources that are not yet taken
    for node in nodes.values():
        data = ((source, (0, output or "", index)) for source, output, index in node.inputs)
        for source, key in (*data, *((name, _CONTROL) for name in node.controls)):
            if source in nodes and nodes[source].op not in _BACK:
                missing[node.name] += node.name not in behind[source]
                behind[source][node.name] = max(key, behind[source].get(node.name, key))
    order: list[Node] = []
    for root in [name for name in nodes if not missing[name]]:
        ready = [root]
        while ready:
            name = ready.pop()
            order.append(nodes[name])
            users = sorted(behind[name], key=behind[name].__getitem__, reverse=True)
            missing.subtract(users)
            ready += [user for user in reversed(users) if not missing[user]]
    return order
