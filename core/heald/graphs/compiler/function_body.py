"""Function bodies: a function of a graph as a graph of its own, whose arguments are placeholders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import InvalidArgument, NotFound, did_you_mean
from ...runtime.contract.op import ArgDef
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.structural import CALL, CONST, IDENTITY, NO_OP, PLACEHOLDER, STATEFUL_CALL
from ...runtime.support.records import NamedTuple
from ...runtime.values.attribute_values import Func
from ...runtime.values.dtypes import DType
from ..graph.graph import Function, Graph, Input, Node
from .inline import inline
from .prune import Tensor

PASSING_OPS = frozenset({CONST, IDENTITY, NO_OP, PLACEHOLDER})


class FunctionBody(NamedTuple):
    """The nodes of one call of a function, under names of their own, without further calls of known depth.

    `arguments`: the placeholders, in order.
    `results`: the tensors that the function returns.
    `effects`: the node that runs what the function does beside its results, or None when it does nothing.
    `enclosing_functions`: node to the names of the functions around it, the outermost first.
    """

    graph: Graph
    arguments: tuple[str, ...]
    results: tuple[Tensor, ...]
    effects: str | None
    enclosing_functions: Mapping[str, tuple[str, ...]]


def function_body(
    site: str, func: Func, types: Sequence[DType], library: Graph, ops: OpRegistry,
    outer_functions: tuple[str, ...] = ()
) -> FunctionBody:
    """Return the body of a function of `library` as it is called at `site`, with arguments of these types.

    `site` begins the names of all nodes. `outer_functions` are around the call; the function is none of them.

    Raises NotFound for an unknown function, InvalidArgument for the wrong number of arguments and for missing
    attributes, ResourceExhausted for too many nodes.
    """
    function = library.functions.get(func.name)
    if function is None:
        raise NotFound(f"the graph has no function '{func.name}'", hint=did_you_mean(func.name, library.functions))
    if len(function.inputs) != len(types):
        raise InvalidArgument(f"function '{func.name}' takes {len(function.inputs)} arguments, {len(types)} are given")
    arguments = [Node(f"{site}/{arg.name}", PLACEHOLDER, attrs={"dtype": dtype})
                 for arg, dtype in zip(function.inputs, types, strict=True)]
    call = Node(site, STATEFUL_CALL, [node.name for node in arguments], attrs={"f": func})
    graph = library.with_nodes([*arguments, call])
    inlined = inline(graph, ops, outer_functions=outer_functions)
    results = [_source_of_identity(inlined.graph, inlined.replacements[Input(site, None, index)], ops)
               for index in range(len(function.outputs))]
    effects = inlined.graph[site].controls
    return FunctionBody(with_partitioned_calls(inlined.graph), tuple(node.name for node in arguments),
                        tuple((tensor.node, tensor.index) for tensor in results), site if effects else None,
                        inlined.enclosing_functions)


def _source_of_identity(graph: Graph, tensor: Input, ops: OpRegistry) -> Input:
    """Return the tensor behind the plain Identity nodes at the end of a body: a turn of a loop would run each of them.

    A node on a device of its own is a copy, and one of a variable's own memory reads it: such nodes stay. So do nodes
    that wait for others than copies of arguments and constants.
    """
    node = graph.nodes.get(tensor.node)
    while node is not None and node.op == IDENTITY and len(node.inputs) == 1:
        source = graph.nodes.get(node.inputs[0].node)
        if source is None or node.device not in ("", source.device) or "_class" in node.attrs:
            break
        if source.op not in ops or any(output.is_ref for output in ops.get(source.op).outputs):
            break
        if not _are_ready(graph, node.controls):
            break
        tensor, node = node.inputs[0], source
    return tensor


def _are_ready(graph: Graph, names: Sequence[str]) -> bool:
    """True if these nodes, and all that they need, do no more than pass on arguments and constants."""
    remaining, visited = [*names], set(names)
    while remaining:
        node = graph.nodes.get(remaining.pop())
        if node is None or node.op not in PASSING_OPS:
            return False
        sources = {*node.controls, *(source.node for source in node.inputs)} - visited
        visited |= sources
        remaining += sources
    return True


def with_partitioned_calls(graph: Graph) -> Graph:
    """Return the graph with nodes whose op is a function of the graph as calls of that function."""
    if not graph.functions:
        return graph
    nodes = [partitioned_call(node, graph.functions[node.op]) for node in graph if node.op in graph.functions]
    return graph.replace(nodes=nodes) if nodes else graph


def partitioned_call(node: Node, function: Function) -> Node:
    """Return a node whose op is this function as a call of it.

    Raises InvalidArgument when the node does not give the types of the function.
    """
    internal_attrs = {key: value for key, value in node.attrs.items() if key.startswith("_")}
    func = Func(function.name, {key: value for key, value in node.attrs.items() if key not in internal_attrs})
    types = {name: _types_of_arguments(arguments, func, node) for name, arguments in
             (("Tin", function.inputs), ("Tout", function.outputs))}
    return Node(node.name, STATEFUL_CALL if function.stateful else CALL, node.inputs, controls=node.controls,
                device=node.device, attrs={"f": func, **types, **internal_attrs})


def argument_types(function: Function, func: Func) -> tuple[DType, ...]:
    """Return the types of a function's arguments. Raises InvalidArgument when `func` does not give them all."""
    types = _expand_types(function.inputs, func)
    if types is None:
        raise InvalidArgument(f"the call does not give the types of function '{func.name}'")
    return types


def _expand_types(arguments: Sequence[ArgDef], func: Func) -> tuple[DType, ...] | None:
    try:
        types = tuple(dtype for argument in arguments for dtype in argument.expand(func.attrs))
    except (KeyError, TypeError, AssertionError):
        return None
    return None if not all(isinstance(dtype, DType) for dtype in types) or (arguments and not types) else types


def _types_of_arguments(arguments: Sequence[ArgDef], func: Func, node: Node) -> tuple[DType, ...]:
    types = _expand_types(arguments, func)
    if types is None:
        raise InvalidArgument(f"the call does not give the types of function '{func.name}'", node=node.name, op=node.op)
    return types
