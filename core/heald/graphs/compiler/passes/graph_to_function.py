"""Pass `graph-to-function`, on request: the nodes between feeds and fetches become a function, which one node calls.

The feeds are its arguments and the fetches its results; by default these are the placeholders and the nodes that no
other node needs. Each fetched node becomes an Identity of a result. The entry's name is that of the function, `main` by
default; the call has it, too. Nodes that only run for their effects are control results.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....errors import InvalidArgument
from ....runtime.contract.graph_pass import PassContext
from ....runtime.contract.op import ArgDef
from ....runtime.contract.structural import CALL, IDENTITY, PLACEHOLDER, PLACEHOLDERS, STATEFUL_CALL, VALUELESS
from ....runtime.values.attribute_values import Func
from ....runtime.values.dtypes import DType
from ...graph.function import Function
from ...graph.graph import Graph, Input, Node
from ...graph.node import parse_input
from ...graph.rewriting import new_name, placed_like
from ...graph.traversal import ancestors, unconsumed_nodes
from ..function_body import with_partitioned_calls
from ..function_form import with_output_name

DEFAULT_ENTRY_NAME = "main"


def convert_graph_to_function(graph: Graph, context: PassContext) -> Graph:
    """Raises InvalidArgument for a kept node that is neither fed nor fetched, for a fetch of a further output, and for
    nodes that do not fit their op."""
    feeds = [parse_input(text) for text in context.feeds] or [
        Input(node.name) for node in graph if node.op in PLACEHOLDERS]
    fetches = [parse_input(text) for text in context.fetches] or [
        Input(name) for name in unconsumed_nodes(graph.nodes) if Input(name) not in feeds]
    name = context.entry or DEFAULT_ENTRY_NAME
    if name in graph.functions and _has_call_of(graph, name):
        return graph  # it is one already
    graph = with_partitioned_calls(graph)
    used_names: set[str] = set(graph.functions)
    function = _make_function(graph, context, new_name(name, used_names), feeds, fetches)
    names = {endpoint.node for endpoint in (*feeds, *fetches)}
    call = Node(new_name(name, names), STATEFUL_CALL if function.stateful else CALL, feeds, attrs={
        "f": Func(function.name), "Tin": tuple(arg.dtype for arg in function.inputs),
        "Tout": tuple(arg.dtype for arg in function.outputs)})
    results = [Node(tensor.node, IDENTITY, [Input(call.name, None, index)], device=graph[tensor.node].device,
                    attrs={"T": function.outputs[index].dtype}) for index, tensor in enumerate(fetches)]
    sources = [_feed_node(graph[tensor.node], arg) for tensor, arg in zip(feeds, function.inputs, strict=True)]
    return graph.with_nodes([*sources, call, *results]).replace(functions=[function])


def _feed_node(node: Node, arg: ArgDef) -> Node:
    """The fed node, which is a placeholder if it had inputs."""
    if not node.inputs and not node.controls:
        return node
    return placed_like(Node(node.name, PLACEHOLDER, attrs={"dtype": arg.dtype, "shape": None}), node)


def _has_call_of(graph: Graph, name: str) -> bool:
    funcs = (node.attrs.get("f") for node in graph)
    return any(isinstance(func, Func) and func.name == name for func in funcs)


def _make_function(
    graph: Graph, context: PassContext, name: str, feeds: Sequence[Input], fetches: Sequence[Input]
) -> Function:
    for tensor in (*feeds, *fetches):
        if tensor.index:
            raise InvalidArgument(f"'{tensor}' is not the first output of its node", node=tensor.node,
                                  op=graph[tensor.node].op, hint="name it by an Identity: heald edit --expose-output")
    fed = {tensor.node for tensor in feeds}
    inside = {key: node for key, node in graph.nodes.items() if key in ancestors(
        {node.name: node for node in graph if node.name not in fed},
        (*_unconsumed_nodes(graph), *(tensor.node for tensor in fetches)))}
    used_names: set[str] = set(inside)
    arguments = {tensor: Input(new_name(_argument_name(tensor.node), used_names)) for tensor in feeds}
    missing = context.kept - fed - {tensor.node for tensor in fetches}
    for name_ in sorted(missing):
        raise InvalidArgument(f"'{name_}' is neither fed nor fetched", node=name_, op=graph[name_].op,
                              hint="--feed and --fetch name the arguments and results")

    def tensor_of_function(tensor: Input) -> Input:
        return arguments.get(tensor) or with_output_name(tensor, inside, graph.functions, context.resolve)

    nodes = [node.replace(inputs=map(tensor_of_function, node.inputs),
                          controls=[arguments[Input(c)].node if Input(c) in arguments else c for c in node.controls])
             for node in inside.values()]
    results = {new_name(_argument_name(tensor.node), used_names): tensor for tensor in fetches}
    effects = [node.name for node in nodes if _has_effects(node, context)]
    return Function(
        name, [ArgDef(arguments[tensor].node, _dtype(graph, context, tensor)) for tensor in feeds],
        [ArgDef(result, _dtype(graph, context, tensor)) for result, tensor in results.items()], nodes,
        {result: tensor_of_function(tensor) for result, tensor in results.items()},
        control_ret={effect: effect for effect in effects}, stateful=bool(effects))


def _unconsumed_nodes(graph: Graph) -> list[str]:
    """The nodes that no other node needs."""
    needed = {name for node in graph for name in (*(i.node for i in node.inputs), *node.controls)}
    return [name for name, node in graph.nodes.items() if name not in needed and node.op not in VALUELESS]


def _argument_name(name: str) -> str:
    """A name as TensorFlow gives arguments: lower case, letters, digits and `_`."""
    text = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return text if text[:1].isalpha() else f"arg_{text}".rstrip("_")


def _dtype(graph: Graph, context: PassContext, tensor: Input) -> DType:
    entry = context.resolve(graph[tensor.node])
    if entry is None or tensor.index >= len(entry.output_tensors):
        raise InvalidArgument(f"the type of '{tensor}' is not known", node=tensor.node, op=graph[tensor.node].op)
    dtype: DType = entry.output_tensors[tensor.index].dtype
    return dtype


def _has_effects(node: Node, context: PassContext) -> bool:
    entry = context.resolve(node)
    return entry is not None and entry.op.stateful
