"""The passes that plugins bring, over a graph, one after the other, and what they are told of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ..contract.device import load_callable
from ..contract.graph_pass import GraphPass, PassContext
from ..contract.op import OpRegistry
from ..errors import InvalidArgument, WeftError
from ..graph.graph import Graph, Node, topological_order, verify
from ..support.plugin_guard import plugin_guard
from ..values.tensor import TensorMetadata, ValueInfo, info
from .infer_node import infer_node
from .place import HOST_OPS, Assignment, Placement
from .prune import Tensor
from .resolve import Resolved, resolve_node

Fold = Callable[[Resolved, Sequence[ValueInfo], tuple[ValueInfo, ...]], tuple[ValueInfo, ...]]


def run_passes(graph: Graph, passes: Sequence[GraphPass], context: PassContext) -> Iterator[tuple[str, Graph]]:
    """The name of each pass, and the graph after it.

    Raises PluginError for a pass that fails, InvalidArgument for one that gives no graph, loses a node that is kept,
    or leaves what is no well-formed graph.
    """
    for entry in passes:
        who = f"pass '{entry.name}' of plugin {entry.plugin}"
        before = graph
        with plugin_guard(who):
            graph = load_callable(entry.function)(before, context)
        if not isinstance(graph, Graph):
            raise InvalidArgument(f"{who} returned {type(graph).__name__}, not a Graph")
        for name in sorted(context.kept - graph.nodes.keys()):
            raise InvalidArgument(f"{who} lost the node '{name}', which is fed, fetched or run", node=name)
        if graph is not before:
            verify(graph)
        yield entry.name, graph


def is_of(graph: Graph, node: Node) -> bool:
    """Whether the graph has this node, its inputs aside."""
    own = graph.nodes.get(node.name)
    return own is not None and own.op == node.op and own.device == node.device and own.attrs is node.attrs


def placed_alike(graph: Graph, placement: Placement, order: Sequence[Resolved], anew: Placement) -> Placement | str:
    """A placement of what passes made of a graph: the graph's own nodes stay where `placement` has them, new ones are
    where `anew` has them. The reason, where one of these, among those to be run, cannot be: it is refused where it asks
    to be or, when it asks for no place, goes to a device that the graph does not use."""
    used = {row.device for row in placement.values()}
    for entry in order:
        if entry.op.name not in HOST_OPS and not is_of(graph, entry.node):
            why = _why_not(anew[entry.node.name], placement.get(entry.node.name), used)
            if why is not None:
                return f"{entry.op.name} '{entry.node.name}': {why}"
    kept = {entry.node.name: placement[entry.node.name] for entry in order if is_of(graph, entry.node)}
    return Placement({**anew, **kept})


def _why_not(row: Assignment, own: Assignment | None, used: Collection[str | None]) -> str | None:
    """Why a new node, in the place of `own` where there was one of its name, cannot be where it is placed; or None."""
    if row.error is not None:
        return row.error.message
    refused = None if own is not None and own.refused else _refused_elsewhere(row)
    if refused is None and not row.requested and row.device not in used:
        return f"it would go to {row.device}, where nothing of the graph runs"
    return refused


def _refused_elsewhere(row: Assignment) -> str | None:
    """Why another type of device than the node's own could not have it; a kernel of its own may be refused."""
    own = (row.device or "").partition(":")[0]
    return next((f"{candidate}: {why}" for candidate, why in row.refused
                 if candidate.partition(" ")[0].partition(":")[0] != own), None)


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
        self._fed_nodes = {name for name, _ in fed}
        self._ops = ops
        self._fold = fold

    def resolve(self, node: Node) -> Resolved | None:
        if node not in self._known:
            try:
                self._known[node] = resolve_node(node, self._graph, self._ops)
            except WeftError:
                self._known[node] = None
        return self._known[node]

    def infer(self, graph: Graph) -> Inferred:
        return Inferred(graph, self.resolve, self._outputs)

    def _outputs(self, entry: Resolved, inputs: Sequence[ValueInfo]) -> tuple[ValueInfo, ...]:
        outputs = infer_node(entry, inputs, self._ops)
        if entry.op.name != "Const":
            outputs = self._fold(entry, inputs, outputs)
        name = entry.node.name
        if name not in self._fed_nodes:
            return outputs
        return tuple(ValueInfo(self._fed[name, i]) if (name, i) in self._fed else output
                     for i, output in enumerate(outputs))


class Inferred(Mapping[str, tuple[ValueInfo, ...]]):
    """What is known of the outputs of a graph's nodes, told when it is asked for; `outputs` tells it of one node, given
    what is known of its inputs."""

    def __init__(
        self, graph: Graph, resolve: Callable[[Node], Resolved | None],
        outputs: Callable[[Resolved, Sequence[ValueInfo]], tuple[ValueInfo, ...]],
    ) -> None:
        self._resolve = resolve
        self._outputs = outputs
        self._nodes = {node.name: node for node in topological_order(graph)}
        self._number = {name: number for number, name in enumerate(self._nodes)}
        self._found: dict[str, tuple[ValueInfo, ...] | None] = {}  # None of a node that does not fit its op

    def __getitem__(self, name: str) -> tuple[ValueInfo, ...]:
        if name not in self._found:
            for needed in sorted(self._needed(name), key=self._number.__getitem__):
                self._found[needed] = self._tell(self._nodes[needed])
        outputs = self._found[name]
        if outputs is None:
            raise KeyError(name)
        return outputs

    def __iter__(self) -> Iterator[str]:
        return (name for name, node in self._nodes.items() if self._resolve(node) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _needed(self, name: str) -> set[str]:
        """The node and those before it that it takes from, at whatever distance, of which nothing is known yet."""
        needed: set[str] = set()
        stack = [name] if name in self._nodes else []
        while stack:
            taker = stack.pop()
            needed.add(taker)
            stack += {source.node for source in self._nodes[taker].inputs
                      if self._number.get(source.node, len(self._nodes)) < self._number[taker]
                      and source.node not in self._found} - needed
        return needed

    def _tell(self, node: Node) -> tuple[ValueInfo, ...] | None:
        entry = self._resolve(node)
        if entry is None:
            return None
        inputs = [self._output(source) or info(tensor.dtype, None)
                  for source, tensor in zip(entry.inputs, entry.input_tensors, strict=True)]
        return self._outputs(entry, inputs)

    def _output(self, source: Tensor) -> ValueInfo | None:
        outputs = self._found.get(source[0]) or ()
        return outputs[source[1]] if source[1] < len(outputs) else None
