"""Pass `eliminate-passthrough-arguments`, on request: loops carry no value that their body returns unchanged.

The pass is TFG's `tfg-eliminate-passthrough-iter-args`. Regions of the loop capture the value instead, and consumers of
the loop's result read the value itself. Inner loops come first: an outer loop often carries a value for them alone.

A consumer that reads the value no longer needs the loop. So a loop with effects keeps each value whose result is read.
A kept loop in the graph stays as it is, because its outputs would have other indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heald.api import Graph, Node, PassContext

from .region_tree import RESULT_SHAPES, Body, Operation, Parameter, RegionTree, Tensor, bodies_within, has_effects


def eliminate_passthrough_arguments(graph: Graph, context: PassContext) -> Graph:
    """The graph whose loops with regions carry no value that their body returns unchanged."""
    tree = RegionTree(graph, context.ops)
    changed = [name for name, body in tree.roots.items() if _Eliminator(graph, context, body).eliminate(body)]
    return tree.graph_with(changed) if changed else graph


class _Eliminator:
    """Removes the values of one root body that loops carry unchanged.

    Tensors keep the indices of the results before the pass until the end, so that a value has one name throughout.
    """

    def __init__(self, graph: Graph, context: PassContext, root: Body) -> None:
        self._graph = graph
        self._context = context
        self._kept = context.kept if root.signature is None else frozenset()
        self._values: dict[Tensor, Tensor] = {}  # by argument of a region or result of a loop: the value itself
        self._indices: dict[Tensor, Tensor] = {}  # by remaining result of a loop: the same with its new index
        self._read_results = {tensor for body in bodies_within(root) for tensor in _tensors(body)}

    def eliminate(self, root: Body) -> bool:
        """Remove the values from all loops of the body. True where there was one."""
        self._visit(root)
        for body in bodies_within(root) if self._values else ():
            for operation in body.operations:
                operation.inputs = [self._current(tensor) for tensor in operation.inputs]
                operation.controls = [self._source(source) for source in operation.controls]
            body.returned = {name: self._current(tensor) for name, tensor in body.returned.items()}
            body.control_returned = {name: self._source(source) for name, source in body.control_returned.items()}
        return bool(self._values)

    def _visit(self, body: Body) -> None:
        for operation in body.operations:
            for region in operation.regions:
                self._visit(region)
            if operation.regions and operation.form.loop and (
                    body.owner is not None or operation.name not in self._kept):
                self._eliminate_from_loop(operation)

    def _eliminate_from_loop(self, loop: Operation) -> None:
        leading = loop.form.leading
        names = [*loop.regions[-1].returned]
        unchanged = [index for index in range(len(names)) if self._is_unchanged(loop, index)]
        if unchanged and has_effects(loop, self._graph, self._context):
            unchanged = [index for index in unchanged if Tensor(loop, "output", index) not in self._read_results]
        if not unchanged:
            return
        removed = {*unchanged}
        first = 1 if leading else 0  # the region of a For has its index in front
        for index in unchanged:
            value = loop.inputs[leading + index]
            self._values[Tensor(loop, "output", index)] = value
            for region in loop.regions:
                self._values[Tensor(region.parameters[first + index], None, 0)] = value
            del loop.regions[-1].returned[names[index]]
        for region in loop.regions:
            region.parameters = [parameter for index, parameter in enumerate(region.parameters)
                                 if index - first not in removed]
        loop.inputs = [tensor for index, tensor in enumerate(loop.inputs) if index - leading not in removed]
        remaining = [index for index in range(len(names)) if index not in removed]
        for index, before in enumerate(remaining):
            self._indices[Tensor(loop, "output", before)] = Tensor(loop, "output", index)
        loop.node = _with_shapes_of(loop.node, remaining)

    def _is_unchanged(self, loop: Operation, index: int) -> bool:
        body = loop.regions[-1]
        parameter = body.parameters[index + (1 if loop.form.leading else 0)]
        return self._value([*body.returned.values()][index]) == Tensor(parameter, None, 0)

    def _value(self, tensor: Tensor) -> Tensor:
        """The tensor that this one is, after loops pass it through."""
        passed = []
        while tensor in self._values:
            passed.append(tensor)
            tensor = self._values[tensor]
        self._values.update(dict.fromkeys(passed, tensor))
        return tensor

    def _current(self, tensor: Tensor) -> Tensor:
        value = self._value(tensor)
        return self._indices.get(value, value)

    def _source(self, source: Operation | Parameter) -> Operation | Parameter:
        """The source of a control token: an argument's token is that of its value."""
        return self._value(Tensor(source, None, 0)).source if isinstance(source, Parameter) else source


def _tensors(body: Body) -> Iterator[Tensor]:
    for operation in body.operations:
        yield from operation.inputs
    yield from body.returned.values()


def _with_shapes_of(node: Node, remaining: list[int]) -> Node:
    """The node with the shapes of its remaining results."""
    attrs: dict[str, Any] = {}
    for name in RESULT_SHAPES:
        shapes = node.attrs.get(name)
        if isinstance(shapes, tuple) and len(shapes) > max(remaining, default=-1):
            attrs[name] = tuple(shapes[index] for index in remaining)
    return node.replace(attrs=attrs) if attrs else node
