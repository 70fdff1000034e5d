"""A graph as the function `_mlir_lifted_graph`, and back, with the contract of TensorFlow's TF Graph IR.

All nodes become the body, those that are fed, too: control edges still come from them. Every output of a fed node is an
argument `NAME_0`, and every output of a fetched node a result. A tensor that is both is returned as the argument.
Control returns are nodes by name. The function's attribute `_heald.lifted_feeds` has the tensor that each argument
stands for, so the way back gives the same graph. Versions and other functions stay those of the graph, which has no
nodes then.

TensorFlow keeps the tensors in attributes of arguments, which its exporter drops, and leaves control results unnamed,
which its exporter refuses. It ignores names that no node has; here these are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from ...errors import AlreadyExists, HealdError, InvalidArgument, NotFound
from ...runtime.contract.op import ArgDef
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.values.dtypes import DType
from ..graph.function import Function
from ..graph.graph import Graph, Input, Node
from ..graph.node import parse_input
from ..graph.rewriting import new_name
from .function_form import with_output_index, with_output_name
from .resolve import Resolved, resolve_node

LIFTED_GRAPH = "_mlir_lifted_graph"
LIFTED_FEEDS = "_heald.lifted_feeds"


def lift_graph(
    graph: Graph, ops: OpRegistry, feeds: Iterable[str] = (), fetches: Iterable[str] = (),
    control_returns: Iterable[str] = (),
) -> Graph:
    """The graph whose nodes are the body of a function. The arguments are names of nodes.

    Raises NotFound for a name that no node has, InvalidArgument for a node that does not fit its op where its outputs
    count, AlreadyExists for a graph that was lifted.
    """
    if LIFTED_GRAPH in graph.functions:
        raise AlreadyExists(f"the graph has a function '{LIFTED_GRAPH}'", hint="function_to_graph makes a graph of it")
    resolved = _resolver(graph, ops)
    fed, fetched, last = (_nodes(graph, names) for names in (feeds, fetches, control_returns))
    used_names: set[str] = set(graph.nodes)
    inputs = {tensor: ArgDef(_argument_name(tensor, used_names), dtype) for node in fed
              for tensor, dtype in _outputs(node, graph, resolved)}
    result_names: set[str] = set()
    outputs = {tensor: ArgDef(_argument_name(tensor, result_names), dtype) for node in fetched
               for tensor, dtype in _outputs(node, graph, resolved)}

    def tensor_in_function(tensor: Input) -> Input:
        argument = inputs.get(Input(tensor.node, None, tensor.index))
        if argument is not None:
            return Input(argument.name)
        return with_output_name(tensor, graph.nodes, graph.functions, resolved)

    nodes = [node.replace(inputs=map(tensor_in_function, node.inputs)) if node.inputs else node for node in graph]
    function = Function(
        LIFTED_GRAPH, inputs.values(), outputs.values(), nodes,
        {arg.name: tensor_in_function(tensor) for tensor, arg in outputs.items()},
        control_ret={node.name: node.name for node in last},
        attrs={LIFTED_FEEDS: tuple(f"{tensor.node}:{tensor.index}" for tensor in inputs)})
    return graph.with_nodes([]).replace(functions=[function])


def unlift_graph(graph: Graph, ops: OpRegistry) -> Graph:
    """The graph whose nodes are the body of the function that `lift_graph` made.

    Raises NotFound for a graph without that function, InvalidArgument for a function that does not tell what its
    arguments stand for, AlreadyExists for a graph with nodes of its own.
    """
    function = graph.functions.get(LIFTED_GRAPH)
    if function is None:
        raise NotFound(f"the graph has no function '{LIFTED_GRAPH}'", hint="graph_to_function makes it")
    if graph.nodes:
        raise AlreadyExists(f"the graph has nodes beside those of '{LIFTED_GRAPH}'")
    tensors = _fed_tensors(function)
    arguments = {arg.name: tensor for arg, tensor in zip(function.inputs, tensors, strict=True)}
    resolved = _resolver(graph, ops)

    def tensor_in_graph(tensor: Input) -> Input:
        fed = arguments.get(tensor.node)
        return fed or with_output_index(tensor, function.nodes, arguments, graph.functions, resolved)

    nodes = [node.replace(inputs=map(tensor_in_graph, node.inputs)) if node.inputs else node
             for node in function.nodes.values()]
    return graph.with_nodes(nodes).replace(without_functions=[LIFTED_GRAPH])


def _fed_tensors(function: Function) -> Sequence[Input]:
    texts = function.attrs.get(LIFTED_FEEDS, ())
    names = [text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in (
        texts if isinstance(texts, tuple) else (texts,))]
    if len(names) != len(function.inputs) or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"the attribute '{LIFTED_FEEDS}' names {len(names)} tensors for the "
                              f"{len(function.inputs)} arguments of function '{function.name}'")
    tensors = [parse_input(name) for name in names]
    missing = next((tensor.node for tensor in tensors if tensor.node not in function.nodes), None)
    if missing is not None:
        raise InvalidArgument(f"an argument of function '{function.name}' stands for a node '{missing}', which the "
                              "function does not have", node=missing)
    return tensors


def _nodes(graph: Graph, names: Iterable[str]) -> list[Node]:
    return [graph[name] for name in dict.fromkeys(names)]


def _argument_name(tensor: Input, used_names: set[str]) -> str:
    return new_name(f"{tensor.node}_{tensor.index}", used_names)


def _resolver(graph: Graph, ops: OpRegistry) -> Callable[[Node], Resolved | None]:
    @cache
    def resolve(node: Node) -> Resolved | None:
        try:
            return resolve_node(node, graph, ops)
        except HealdError:  # whoever runs the node gets the error
            return None

    return resolve


def _outputs(node: Node, graph: Graph, resolved: Callable[[Node], Resolved | None]) -> list[tuple[Input, DType]]:
    entry, called = resolved(node), graph.functions.get(node.op)
    if entry is not None:
        types = [arg.dtype for arg in entry.output_tensors]
    else:
        types = [arg.dtype for arg in called.outputs if arg.dtype is not None] if called is not None else []
    if entry is None and (called is None or len(types) < len(called.outputs)):
        raise InvalidArgument(f"the outputs of '{node.name}' are not known", node=node.name, op=node.op,
                              hint="its op is unknown, or the node does not fit it")
    return [(Input(node.name, None, index), dtype) for index, dtype in enumerate(types)]
