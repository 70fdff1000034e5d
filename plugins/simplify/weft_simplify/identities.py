"""Pass `identities`: nodes that give what they take go, and their users take it from where it comes.

Ops that check what goes through them (CheckNumerics, EnsureShape) stay, and so does what could fail: a Reshape, a
Transpose counts only where it is certain to succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from weft.api import Graph, Input, Node, PassContext, topological_order

from .view import View

Dims = Sequence[int | None]


def removed(graph: Graph, context: PassContext) -> Graph:
    view = View(graph, context)
    same: dict[Input, Input] = {}  # what is the same tensor as another
    shorter: dict[str, Input] = {}  # reshaping nodes that may take what an earlier one takes
    for node in topological_order(graph):
        find = _FOUND.get(node.op)
        if find is None:
            continue
        sources = [same.get(source, source) for source in node.inputs]
        if _may_go(view, node):
            same.update((Input(node.name, None, index), source) for index, source in find(view, node, sources))
        if node.op == "Reshape" and Input(node.name) not in same:
            shorter[node.name] = _before_reshape(view, sources[0], shorter)
    return view.edited(_rewired(graph, same, shorter))


def _may_go(view: View, node: Node) -> bool:
    """Nodes that ask for another place than what they take are copies that somebody wants."""
    source = view.graph[node.inputs[0].node]
    return (view.is_free(node) and "_class" not in node.attrs and node.device in ("", source.device)
            and view.resolve(node) is not None)


def _rewired(graph: Graph, same: dict[Input, Input], shorter: dict[str, Input]) -> list[Node]:
    changed = []
    for node in graph:
        inputs = [same.get(source, source) for source in node.inputs]
        if node.name in shorter:
            inputs[0] = shorter[node.name]
        if tuple(inputs) != node.inputs:
            changed.append(node.replace(inputs=inputs))
    return changed


Same = list[tuple[int, Input]]  # an output's number, and what it is


def _identity(view: View, _: Node, sources: list[Input]) -> Same:
    """Not of a variable: that may be written before what was read of it is used."""
    return [(index, source) for index, source in enumerate(sources) if not view.is_reference(source)]


def _cast(_: View, node: Node, sources: list[Input]) -> Same:
    return [(0, sources[0])] if node.attrs["SrcT"] is node.attrs["DstT"] else []


def _times_one(view: View, node: Node, sources: list[Input]) -> Same:
    for number in (0, 1):
        value = view.array(node.inputs[number])
        is_one = value is not None and value.shape == () and value.dtype.kind in "fiu" and value == 1
        if is_one and (number == 1 or node.op == "Mul"):
            return [(0, sources[1 - number])]
    return []


def _reshape(view: View, node: Node, sources: list[Input]) -> Same:
    before, after = view.shape(node.inputs[0]), view.shape(Input(node.name))
    may_go = before is not None and before == after and before.count(None) < 2 and is_sure(view, node)
    return [(0, sources[0])] if may_go else []


def is_sure(view: View, node: Node) -> bool:
    """Whether a Reshape is certain to succeed, whatever is not known of its input's shape."""
    before, after, wanted = view.shape(node.inputs[0]), view.shape(Input(node.name)), view.array(node.inputs[1])
    if before is None or after is None or wanted is None:
        return False
    if None not in before:
        return None not in after
    given = [int(length) for length in wanted.reshape(-1)]
    left_open = given.count(-1) == 1 and all(length > 0 for length in given if length != -1)
    known = prod(length for length in before if length is not None)
    return left_open and known > 0 and known % prod(length for length in given if length != -1) == 0


def _before_reshape(view: View, source: Input, shorter: dict[str, Input]) -> Input:
    """What a Reshape may take in the place of a Reshape's result: the shape between does not matter."""
    node = view.graph[source.node]
    if node.op != "Reshape" or not view.is_free(node) or not is_sure(view, node):
        return source
    return shorter.get(node.name, node.inputs[0])


def _transpose(view: View, node: Node, sources: list[Input]) -> Same:
    """One that changes nothing, or that undoes another."""
    order = _order(view, node)
    if order is None:
        return []
    if order == sorted(order):
        return [(0, sources[0])]
    first = view.graph[sources[0].node]
    earlier = _order(view, first) if first.op == "Transpose" and view.is_free(first) else None
    if earlier is None or [earlier[axis] for axis in order] != sorted(order):
        return []
    return [(0, first.inputs[0])]


def _order(view: View, node: Node) -> list[int] | None:
    """The axes of a Transpose, where they are known and it is certain to succeed."""
    shape, axes = view.shape(node.inputs[0]), view.array(node.inputs[1])
    if shape is None or axes is None or axes.shape != (len(shape),):
        return None
    order = [int(axis) for axis in axes]
    return order if sorted(order) == list(range(len(shape))) else None


_FOUND: dict[str, Callable[[View, Node, list[Input]], Same]] = {
    **dict.fromkeys(("Identity", "IdentityN", "PreventGradient", "Snapshot", "StopGradient"), _identity),
    **dict.fromkeys(("Div", "Mul", "RealDiv"), _times_one),
    "Cast": _cast, "Reshape": _reshape, "Transpose": _transpose,
}
