"""Pass `function-to-graph`, on request: the nodes of the entry function replace its one call, under their own names.

It undoes `graph-to-function`: an Identity of a result that has the result's name in the function is dropped for it.
Other calls stay, while `inline` replaces all of them under new names.
"""

from __future__ import annotations

from ....errors import AlreadyExists, InvalidArgument, NotFound
from ....runtime.contract.graph_pass import PassContext
from ....runtime.contract.structural import IDENTITY
from ....runtime.values.attribute_values import Func
from ...graph.function import Function
from ...graph.graph import Graph, Input, Node
from ..function_form import graph_of_function, is_generic, with_output_index
from .graph_to_function import DEFAULT_ENTRY_NAME


def convert_function_to_graph(graph: Graph, context: PassContext) -> Graph:
    """Raises NotFound for an entry that the graph does not have, InvalidArgument for a function with attributes of its
    own and for one that several nodes call, AlreadyExists for a node whose name the graph has already."""
    name = context.entry or DEFAULT_ENTRY_NAME
    function = graph.functions.get(name)
    calls = [node for node in graph if isinstance(func := node.attrs.get("f"), Func) and func.name == name]
    if not calls and (function is not None or context.entry is None):
        return graph
    if function is None:
        raise NotFound(f"the graph has no function '{name}'", hint="heald inspect lists the functions")
    if len(calls) > 1 or is_generic(function):
        what = f"{len(calls)} nodes call it" if len(calls) > 1 else "its types are those of its call"
        raise InvalidArgument(f"the function '{name}' cannot replace its call: {what}",
                              hint="the pass inline replaces all calls")
    return _replace_call(graph, context, function, calls[0])


def _replace_call(graph: Graph, context: PassContext, function: Function, call: Node) -> Graph:
    arguments = dict(zip((arg.name for arg in function.inputs), call.inputs, strict=True))
    body = [node for node in graph_of_function(function, graph, context.resolve) if node.name not in arguments]
    results = {}
    for index, output in enumerate(function.outputs):
        tensor = function.ret[output.name]
        is_argument = tensor.node in arguments
        results[Input(call.name, None, index)] = arguments[tensor.node] if is_argument else with_output_index(
            tensor, function.nodes, arguments, graph.functions, context.resolve)
    dropped = {node.name for node in graph if node.op == IDENTITY and node.name in function.nodes
               and results.get(node.inputs[0]) == Input(node.name)}
    nodes: list[Node] = []
    for node in graph:
        if node is call:
            nodes += [_node_outside_function(body_node, arguments, call) for body_node in body]
        elif node.name not in dropped:
            nodes.append(_node_reading_body(node, results, [*function.control_ret.values()], call))
    names = [node.name for node in nodes]
    twice = next((name for name in names if name in function.nodes and names.count(name) > 1), None)
    if twice is not None:
        raise AlreadyExists(f"both the graph and the function '{function.name}' have a node '{twice}'", node=twice)
    return graph.with_nodes(nodes).replace(without_functions=[function.name])


def _node_outside_function(node: Node, arguments: dict[str, Input], call: Node) -> Node:
    """A node of the function with the call's inputs instead of arguments."""
    controls = [arguments[name].node if name in arguments else name for name in node.controls]
    return node.replace(inputs=[arguments.get(tensor.node, tensor) for tensor in node.inputs],
                        controls=dict.fromkeys((*controls, *call.controls)))


def _node_reading_body(node: Node, results: dict[Input, Input], effects: list[str], call: Node) -> Node:
    """A node of the graph that reads the function's nodes instead of the call."""
    waits = [control for name in node.controls for control in (effects if name == call.name else [name])]
    return node.replace(inputs=[results.get(tensor, tensor) for tensor in node.inputs], controls=dict.fromkeys(waits))
