"""Pass `lift-legacy-calls`, on request: a node whose op is a function's name becomes a PartitionedCall of the function.

It becomes a StatefulPartitionedCall where the function is stateful. Calls in the bodies of functions are changed, too,
but for those whose types depend on attributes of the function around them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....runtime.contract.graph_pass import PassContext
from ...graph.attr_value import AttrPlaceholder
from ...graph.function import Function
from ...graph.graph import Graph
from ...graph.node import Input, Node
from ..function_body import partitioned_call, with_partitioned_calls


def lift_legacy_calls(graph: Graph, _: PassContext) -> Graph:
    """Raises InvalidArgument for a call that does not give the types of its function."""
    lift_call = (_lift_calls_in(function, graph.functions) for function in graph.functions.values())
    changed = [after for after in lift_call if graph.functions[after.name] is not after]
    graph = with_partitioned_calls(graph)
    return graph.replace(functions=changed) if changed else graph


def _lift_calls_in(function: Function, functions: Mapping[str, Function]) -> Function:
    """The function with calls instead of nodes whose op is a function. Such a node's results have the names of the
    callee's results, a call's results have the name `output`."""
    calls = {node.name: functions[node.op] for node in function.nodes.values() if node.op in functions
             and not any(isinstance(value, AttrPlaceholder) for value in node.attrs.values())}
    if not calls:
        return function
    ports = {(name, output.name): index for name, callee in calls.items() for index, output in
             enumerate(callee.outputs)}

    def with_call_output(tensor: Input) -> Input:
        index = ports.get((tensor.node, tensor.output or ""))
        return tensor if index is None else Input(tensor.node, "output", index + tensor.index)

    def lift_call(node: Node) -> Node:
        inputs = [with_call_output(tensor) for tensor in node.inputs]
        node = node if inputs == list(node.inputs) else node.replace(inputs=inputs)
        return partitioned_call(node, calls[node.name]) if node.name in calls else node

    return function.replace(nodes=map(lift_call, function.nodes.values()),
                            ret={name: with_call_output(tensor) for name, tensor in function.ret.items()})
