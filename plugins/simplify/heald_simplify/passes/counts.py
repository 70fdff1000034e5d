"""Pass `counts`: a While that counts its turns becomes a For, which needs no condition.

    While(0, 9, x) while i < n: i + 1, n, f(i, x)  ->  For(0, 9, 1; 9, 9, x): i, n, f(turn, x)

The For has the variables of the While, so its outputs have the same indices. It is given the counters as they are after
the last turn, and its body returns them unchanged. The body counts on if these numbers are needed and unknown.
No node computes them: it could be the only one of the graph on its device.
"""

from __future__ import annotations

import numpy as np
from heald.api import Func, Function, Graph, Input, Node, PassContext, constant, dtypes, new_name, placed_like

from ..counted_loops import LOOPS, Bound, CountedLoop, find_counted_loop
from ..graph_view import GraphView


def count_loops(graph: Graph, context: PassContext) -> Graph:
    if not any(node.op in LOOPS for node in graph):
        return graph
    view = GraphView(graph, context)
    loops = [loop for node in graph if (loop := find_counted_loop(view, node)) is not None]
    if not loops:
        return graph
    nodes: list[Node] = []
    functions: list[Function] = []
    names = set(graph.functions)
    for loop in loops:
        end = _end(view, loop)
        body = _counted_body(loop, new_name(f"{loop.body.name}_counted", names), counts_on=end is None)
        functions.append(body)
        nodes += _for_nodes(view, loop, body, end)
    return graph.replace(nodes=nodes, functions=functions)


def _end(view: GraphView, loop: CountedLoop) -> Bound | None:
    """The counters behind the loop, or any number where nothing reads them. None for an unknown number."""
    name = loop.node.name
    is_read = any(consumer.inputs[number].index in loop.counters for consumer, number in view.consumers[name])
    if not is_read and not view.is_kept(loop.node):
        return loop.start
    bounds = [bound for bound in loop.bounds if isinstance(bound, int)]
    if not isinstance(loop.start, int) or len(bounds) < len(loop.bounds):
        return None
    return max(loop.start, min(bounds))


def _counted_body(loop: CountedLoop, name: str, *, counts_on: bool) -> Function:
    """The body with the number of the turn as its first argument, which its nodes read instead of the counters.

    `counts_on`: True for a body that returns the next number in their place.
    """
    body = loop.body
    arguments = [arg.name for arg in body.inputs]
    first = body.inputs[min(loop.counters)]
    turn = first._replace(name=new_name("turn", {*arguments, *body.nodes}))
    instead = {Input(arguments[index]): Input(turn.name) for index in loop.counters}
    nodes = [node.replace(inputs=[instead.get(source, source) for source in node.inputs])
             if any(source in instead for source in node.inputs) else node for node in body.nodes.values()]
    ret = {key: instead.get(tensor, tensor) for key, tensor in body.ret.items()}
    if not counts_on:
        ret |= {body.outputs[index].name: Input(arguments[index]) for index in loop.counters}
    return Function(name, [turn, *body.inputs], body.outputs, nodes, ret, stateful=body.stateful)


def _for_nodes(view: GraphView, loop: CountedLoop, body: Function, end: Bound | None) -> list[Node]:
    """The For in the place of the While, and the nodes of its numbers."""
    node = loop.node
    writer = _NumberWriter(view, node)
    start, limit = writer.tensor("start", loop.start), writer.tensor("limit", writer.smallest(loop.bounds))
    last = start if end is None else writer.tensor("end", end)
    inputs = [last if index in loop.counters else source for index, source in enumerate(node.inputs)]
    numbers = [start, limit, writer.tensor("step", 1)]
    types = [view.dtype(source) for source in node.inputs]
    counted = Node(node.name, "For", [*numbers, *inputs], controls=node.controls,
                   attrs={"T": tuple(types), "body": Func(body.name)})
    return [*writer.nodes, placed_like(counted, node)]


class _NumberWriter:
    """Makes the nodes of int32 scalars, under names that begin with the loop's."""

    def __init__(self, view: GraphView, loop: Node) -> None:
        self._view = view
        self._loop = loop
        self.nodes: list[Node] = []

    def node(self, name: str, op: str, *inputs: Input) -> Input:
        node = Node(self._view.new_name(f"{self._loop.name}/{name}"), op, inputs, attrs={"T": dtypes.int32})
        return self._add(node)

    def tensor(self, name: str, number: Bound) -> Input:
        if isinstance(number, Input):
            return number
        return self._add(constant(self._view.new_name(f"{self._loop.name}/{name}"), np.array(number, np.int32)))

    def smallest(self, bounds: tuple[Bound, ...]) -> Bound:
        numbers = [bound for bound in bounds if isinstance(bound, int)]
        tensors = [bound for bound in bounds if isinstance(bound, Input)]
        if not tensors:
            return min(numbers)
        if numbers:
            tensors.append(self.tensor("bound", min(numbers)))
        smallest = tensors[0]
        for other in tensors[1:]:
            smallest = self.node("limit", "Minimum", smallest, other)
        return smallest

    def _add(self, node: Node) -> Input:
        self.nodes.append(placed_like(node, self._loop))
        return Input(node.name)
