"""Nodes of a function as nodes of a graph, and back: a function names outputs, a graph numbers them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ...errors import InvalidArgument
from ...runtime.contract.structural import PLACEHOLDER
from ...runtime.values.attribute_values import ShapeAttr
from ..graph.attr_value import AttrPlaceholder
from ..graph.function import Function
from ..graph.graph import Graph
from ..graph.node import Input, Node
from .resolve import Resolved

Resolve = Callable[[Node], Resolved | None]


def is_generic(function: Function) -> bool:
    """True for a function that takes types or attributes from its call."""
    args = (*function.inputs, *function.outputs)
    values = (value for node in function.nodes.values() for value in node.attrs.values())
    return any(arg.dtype is None or arg.number_attr is not None for arg in args) or any(
        isinstance(value, AttrPlaceholder) for value in values)


def graph_of_function(function: Function, library: Graph, resolve: Resolve) -> Graph:
    """The body of a function that is not generic, with a placeholder for each argument.

    Raises InvalidArgument for an output that its node does not have, as far as the op is known.
    """
    arguments = []
    for index, arg in enumerate(function.inputs):
        shapes = function.arg_attrs.get(index, {}).get("_output_shapes")
        shape = shapes[0] if isinstance(shapes, tuple) and len(shapes) == 1 else None
        if isinstance(shape, ShapeAttr):  # a note may have sizes below -1
            shape = ShapeAttr(None if size is None or size < 0 else size for size in shape)
        arguments.append(Node(arg.name, PLACEHOLDER, attrs={"dtype": arg.dtype, "shape": shape}))
    argument_names = {arg.name for arg in function.inputs}
    nodes = [node.replace(inputs=[with_output_index(tensor, function.nodes, argument_names, library.functions, resolve)
                                  for tensor in node.inputs]) for node in function.nodes.values()]
    return library.with_nodes([*arguments, *nodes])


def with_output_index(
    tensor: Input, nodes: Mapping[str, Node], arguments: Collection[str], functions: Mapping[str, Function],
    resolve: Resolve,
) -> Input:
    """The tensor with the index of its output instead of the output's name. Of an unknown op the index stays."""
    if tensor.output is None or tensor.node in arguments:
        return Input(tensor.node)
    indices = [index for index, (name, at) in enumerate(_output_names(nodes[tensor.node], functions, resolve))
               if (name, at) == (tensor.output, tensor.index)]
    if not indices and resolve(nodes[tensor.node]) is not None:
        raise InvalidArgument(f"'{tensor}' is no output", node=tensor.node, op=nodes[tensor.node].op)
    return Input(tensor.node, None, indices[0] if indices else tensor.index)


def with_output_name(
    tensor: Input, nodes: Mapping[str, Node], functions: Mapping[str, Function], resolve: Resolve
) -> Input:
    """The tensor with the name of its output instead of its index.

    Raises InvalidArgument for a node that does not fit its op, and for an index beyond its outputs.
    """
    outputs = [*_output_names(nodes[tensor.node], functions, resolve)]
    if tensor.index >= len(outputs):
        raise InvalidArgument(f"the name of output {tensor.index} of '{tensor.node}' is not known", node=tensor.node,
                              op=nodes[tensor.node].op, hint="its op is unknown, or the node does not fit it")
    return Input(tensor.node, *outputs[tensor.index])


def _output_names(node: Node, functions: Mapping[str, Function], resolve: Resolve) -> Iterator[tuple[str, int]]:
    """Yield the name and the index within it for each output."""
    entry, called = resolve(node), functions.get(node.op)
    attrs: Mapping[str, Any] = node.attrs if entry is None else entry.attrs
    args = entry.op.outputs if entry is not None else called.outputs if called is not None else ()
    for arg in args:
        yield from ((arg.name, at) for at in range(arg.count(attrs)))
