"""The passes that plugins bring, over a graph, one after the other, and what they are told of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from .device import load_callable
from .errors import InvalidArgument, WeftError
from .graph import Graph, Node, topological_order, verify
from .graph_pass import GraphPass, PassContext
from .infer import infer_node
from .op import OpRegistry
from .place import HOST_OPS, Assignment, Placement
from .plugin_code import plugin_code
from .prune import Tensor
from .resolve import Resolved, resolve_node
from .tensor import TensorMetadata, ValueInfo, info

Fold = Callable[[Resolved, Sequence[ValueInfo], tuple[ValueInfo, ...]], tuple[ValueInfo, ...]]


def optimize(graph: Graph, passes: Sequence[GraphPass], context: PassContext) -> Iterator[tuple[str, Graph]]:
    """The name of each pass, and the graph after it.

    Raises PluginError for a pass that fails, InvalidArgument for one that gives no graph, loses a node that is kept,
    or leaves what is no well-formed graph.
    """
    for entry in passes:
        who = f"pass '{entry.name}' of plugin {entry.plugin}"
        with plugin_code(who):
            graph = load_callable(entry.function)(graph, context)
        if not isinstance(graph, Graph):
            raise InvalidArgument(f"{who} returned {type(graph).__name__}, not a Graph")
        for name in sorted(context.kept - graph.nodes.keys()):
            raise InvalidArgument(f"{who} lost the node '{name}', which is fed, fetched or run", node=name)
        verify(graph)
        yield entry.name, graph


def is_of(graph: Graph, node: Node) -> bool:
    """Whether the graph has this node, its inputs aside."""
    own = graph.nodes.get(node.name)
    return own is not None and own.op == node.op and own.device == node.device and own.attrs is node.attrs


def placed_alike(graph: Graph, placement: Placement, order: Sequence[Resolved], anew: Placement) -> Placement | None:
    """A placement of what passes made of a graph: the graph's own nodes stay where `placement` has them, new ones are
    where `anew` has them. None where one of these, among those to be run, is refused where it asks to be or, when it
    asks for no place, goes to a device that the graph does not use."""
    used = {row.device for row in placement.values()}
    for entry in order:
        row = anew[entry.node.name]
        if entry.op.name in HOST_OPS or is_of(graph, entry.node):
            continue
        own = placement.get(row.node)
        is_refused = row.error is not None or (_refused_elsewhere(row) and not (own is not None and own.refused))
        if is_refused or (not row.requested and row.device not in used):
            return None
    kept = {entry.node.name: placement[entry.node.name] for entry in order if is_of(graph, entry.node)}
    return Placement({**anew, **kept})


def _refused_elsewhere(row: Assignment) -> bool:
    """Whether another type of device than the node's own could not have it; a kernel of its own may be refused."""
    own = (row.device or "").partition(":")[0]
    return any(candidate.partition(" ")[0].partition(":")[0] != own for candidate, _ in row.refused)


class NodeFacts:
    """What is known of nodes while passes change the graph around them: `resolve` and `infer` of PassContext.

    `nodes`: the session's, resolved; `fed`: the metadata of what is fed; `fold`: what may tell the elements of a node's
    outputs, given what is known of its inputs and of them.
    """

    def __init__(
        self, graph: Graph, nodes: Mapping[str, Resolved | WeftError], fed: Mapping[Tensor, TensorMetadata],
        ops: OpRegistry, fold: Fold,
    ) -> None:
        self._graph = graph
        self._known: dict[Node, Resolved | None] = {
            entry.node: entry for entry in nodes.values() if isinstance(entry, Resolved)}
        self._fed = fed
        self._ops = ops
        self._fold = fold

    def resolve(self, node: Node) -> Resolved | None:
        if node not in self._known:
            try:
                self._known[node] = resolve_node(node, self._graph, self._ops)
            except WeftError:
                self._known[node] = None
        return self._known[node]

    def infer(self, graph: Graph) -> dict[str, tuple[ValueInfo, ...]]:
        found: dict[str, tuple[ValueInfo, ...]] = {}
        for node in topological_order(graph):
            entry = self.resolve(node)
            if entry is not None:
                inputs = [_output(found, source) or info(tensor.dtype, None)
                          for source, tensor in zip(entry.inputs, entry.input_tensors, strict=True)]
                outputs = self._fold(entry, inputs, infer_node(entry, inputs, self._ops))
                found[node.name] = tuple(
                    ValueInfo(self._fed[node.name, i]) if (node.name, i) in self._fed else output
                    for i, output in enumerate(outputs))
        return found


def _output(found: Mapping[str, tuple[ValueInfo, ...]], source: Tensor) -> ValueInfo | None:
    outputs = found.get(source[0], ())
    return outputs[source[1]] if source[1] < len(outputs) else None
