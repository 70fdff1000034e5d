"""Pass `shape-inference`, on request: writes the inferred shapes of all outputs as `_output_shapes`, in functions too.

A shape that a node has already is merged with the inferred one; where both contradict each other, the inferred one
stays. Arguments of functions have the shapes that the function declares. Generic functions stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....runtime.contract.graph_pass import PassContext
from ....runtime.values.attribute_values import ShapeAttr
from ....runtime.values.tensor import ValueInfo, merge_shapes
from ...graph.function import Function
from ...graph.graph import Graph, Node
from ..function_form import graph_of_function, is_generic

SHAPES = "_output_shapes"


def infer_shapes(graph: Graph, context: PassContext) -> Graph:
    changed = _nodes_with_new_shapes(graph, context.infer(graph))
    functions = [after for function in graph.functions.values() if not is_generic(function)
                 and (after := _function_with_shapes(function, graph, context)) is not function]
    return graph.replace(nodes=changed, functions=functions or None) if changed or functions else graph


def _function_with_shapes(function: Function, library: Graph, context: PassContext) -> Function:
    inferred = context.infer(graph_of_function(function, library, context.resolve))
    changed = {node.name: node for node in _nodes_with_new_shapes(function.nodes.values(), inferred)}
    if not changed:
        return function
    return function.replace(nodes=[changed.get(node.name, node) for node in function.nodes.values()])


def _nodes_with_new_shapes(nodes: Iterable[Node], inferred: Mapping[str, tuple[ValueInfo, ...]]) -> list[Node]:
    """The nodes whose shapes are not yet written as they are known."""
    changed = []
    for node in nodes:
        outputs = inferred.get(node.name, ())
        old_shapes = node.attrs.get(SHAPES)
        before: tuple[Any, ...] = (None,) * len(outputs)
        if isinstance(old_shapes, tuple) and len(old_shapes) == len(outputs):
            before = old_shapes
        shapes = tuple(_merge_inferred(output.shape, shape) for output, shape in zip(outputs, before, strict=True))
        if shapes and old_shapes != shapes:
            changed.append(node.replace(attrs={SHAPES: shapes}))
    return changed


def _merge_inferred(inferred: tuple[int | None, ...] | None, declared: Any) -> ShapeAttr | None:
    try:
        shape = merge_shapes(inferred, declared)
    except ValueError:
        shape = inferred
    return None if shape is None else ShapeAttr(shape)
