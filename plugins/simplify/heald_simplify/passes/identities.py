"""Pass `identities`: nodes that return their input unchanged are removed, and their consumers read the input itself.

Ops that check their input (CheckNumerics, EnsureShape) stay. So do nodes that could fail: a Reshape or a Transpose is
removed only where it is certain to succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from heald.api import Graph, Input, Node, PassContext, topological_order

from ..graph_view import GraphView

Dims = Sequence[int | None]


def remove_identities(graph: Graph, context: PassContext) -> Graph:
    """A Reshape that gets the input of the Reshape before it may return that input, so the pass goes on until none
    does."""
    while (after := _without_identities(graph, context)) is not graph:
        graph = after
    return graph


def _without_identities(graph: Graph, context: PassContext) -> Graph:
    view = GraphView(graph, context)
    same: dict[Input, Input] = {}  # from a tensor to an equal one
    shorter: dict[str, Input] = {}  # from a Reshape to the input of the Reshape before it
    for node in topological_order(graph):
        find = _EQUALITIES.get(node.op)
        if find is None:
            continue
        sources = [same.get(source, source) for source in node.inputs]
        if _may_go(view, node):
            same.update((Input(node.name, None, index), source) for index, source in find(view, node, sources))
        if node.op == "Reshape" and Input(node.name) not in same:
            shorter[node.name] = _before_reshape(view, sources[0], shorter)
    return view.with_edits(_nodes_with_new_inputs(graph, same, shorter))


def _may_go(view: GraphView, node: Node) -> bool:
    """False for kept and ordered nodes, and for a node that asks for another device than its input: it is a copy."""
    source = view.graph[node.inputs[0].node]
    return (view.is_free(node) and "_class" not in node.attrs and node.device in ("", source.device)
            and view.resolve(node) is not None)


def _nodes_with_new_inputs(graph: Graph, same: dict[Input, Input], shorter: dict[str, Input]) -> list[Node]:
    changed = []
    for node in graph:
        inputs = [same.get(source, source) for source in node.inputs]
        if node.name in shorter:
            inputs[0] = shorter[node.name]
        if tuple(inputs) != node.inputs:
            changed.append(node.replace(inputs=inputs))
    return changed


Same = list[tuple[int, Input]]  # an output's index, and the equal tensor


def _equal_of_identity(view: GraphView, _: Node, sources: list[Input]) -> Same:
    """References are left out: the variable may be written before the consumer reads the tensor."""
    return [(index, source) for index, source in enumerate(sources) if not view.is_reference(source)]


def _equal_of_cast(_: GraphView, node: Node, sources: list[Input]) -> Same:
    return [(0, sources[0])] if node.attrs["SrcT"] is node.attrs["DstT"] else []


def _equal_of_product(view: GraphView, node: Node, sources: list[Input]) -> Same:
    for number in (0, 1):
        value = view.array(node.inputs[number])
        is_one = value is not None and value.shape == () and value.dtype.kind in "fiu" and value == 1
        if is_one and (number == 1 or node.op == "Mul"):
            return [(0, sources[1 - number])]
    return []


def _equal_of_reshape(view: GraphView, node: Node, sources: list[Input]) -> Same:
    before, after = view.shape(node.inputs[0]), view.shape(Input(node.name))
    may_go = before is not None and before == after and before.count(None) < 2 and is_certain_reshape(view, node)
    return [(0, sources[0])] if may_go else []


def is_certain_reshape(view: GraphView, node: Node) -> bool:
    """True for a Reshape that succeeds for every shape its input may have."""
    before, after, target_shape = view.shape(node.inputs[0]), view.shape(Input(node.name)), view.array(node.inputs[1])
    if before is None or after is None or target_shape is None:
        return False
    if None not in before:
        return None not in after
    lengths = [int(length) for length in target_shape.reshape(-1)]
    left_open = lengths.count(-1) == 1 and all(length > 0 for length in lengths if length != -1)
    known_size = prod(length for length in before if length is not None)
    return left_open and known_size > 0 and known_size % prod(length for length in lengths if length != -1) == 0


def _before_reshape(view: GraphView, source: Input, shorter: dict[str, Input]) -> Input:
    """The first input of a chain of Reshapes: the shapes in between do not matter."""
    node = view.graph[source.node]
    if node.op != "Reshape" or not view.is_free(node) or not is_certain_reshape(view, node):
        return source
    return shorter.get(node.name, node.inputs[0])


def _equal_of_transpose(view: GraphView, node: Node, sources: list[Input]) -> Same:
    """Match a Transpose that keeps the order of axes, or that reverses the Transpose before it."""
    order = _permutation(view, node)
    if order is None:
        return []
    if order == sorted(order):
        return [(0, sources[0])]
    first = view.graph[sources[0].node]
    earlier = _permutation(view, first) if first.op == "Transpose" and view.is_free(first) else None
    if earlier is None or [earlier[axis] for axis in order] != sorted(order):
        return []
    return [(0, first.inputs[0])]


def _permutation(view: GraphView, node: Node) -> list[int] | None:
    """The axes of a Transpose, None unless they are known and valid."""
    shape, axes = view.shape(node.inputs[0]), view.array(node.inputs[1])
    if shape is None or axes is None or axes.shape != (len(shape),):
        return None
    order = [int(axis) for axis in axes]
    return order if sorted(order) == list(range(len(shape))) else None


_EQUALITIES: dict[str, Callable[[GraphView, Node, list[Input]], Same]] = {
    **dict.fromkeys(("Identity", "IdentityN", "PreventGradient", "Snapshot", "StopGradient"), _equal_of_identity),
    **dict.fromkeys(("Div", "Mul", "RealDiv"), _equal_of_product),
    "Cast": _equal_of_cast, "Reshape": _equal_of_reshape, "Transpose": _equal_of_transpose,
}
