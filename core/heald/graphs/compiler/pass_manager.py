"""The pass manager runs the graph passes of plugins one after the other, and gives them facts about nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

from ...errors import HealdError, PluginError, describe_exception
from ...runtime.contract.device import load_callable
from ...runtime.contract.graph_pass import GraphPass, PassContext
from ...runtime.contract.host_kernel import CORE_PLUGIN
from ...runtime.contract.op_registry import OpRegistry
from ...runtime.contract.placement import Assignment, Placement
from ...runtime.contract.structural import CONST, CONTROL_FLOW, MUST_FEED, NO_KERNEL
from ...runtime.support.fault_place import is_raised_by
from ...runtime.values.tensor import TensorMetadata, ValueInfo, info
from ..graph.graph import Graph, Node, topological_order, verify
from .infer_node import fed_metadata, infer_node
from .prune import Tensor
from .resolve import Resolved, resolve_node

Fold = Callable[[Resolved, Sequence[ValueInfo], tuple[ValueInfo, ...]], tuple[ValueInfo, ...]]


def run_passes(graph: Graph, passes: Sequence[GraphPass], context: PassContext) -> Iterator[tuple[str, Graph]]:
    """Yield the name of each pass, and the graph after it.

    Raises PluginError for a plugin's pass that fails, that returns no graph, loses a kept node, or returns a malformed
    graph. Raises the error of core's own pass, and an error of heald that a plugin's pass raises itself.
    """
    for entry in passes:
        before = graph
        graph = _run_pass(entry, before, context)
        if graph is not before:
            _check_result(entry, graph, context)
        yield entry.name, graph


def _run_pass(entry: GraphPass, graph: Graph, context: PassContext) -> Graph:
    try:
        changed: Graph = load_callable(entry.function)(graph, context)
    except (Exception, SystemExit) as error:  # a plugin may raise anything
        if entry.plugin == CORE_PLUGIN or (isinstance(error, HealdError) and is_raised_by(error, _module_of(entry))):
            raise
        raise PluginError(f"{_who(entry)} raised {' '.join(describe_exception(error).split())}", plugin=entry.plugin,
                          hint=_remedy(entry)) from error
    return changed


def _check_result(entry: GraphPass, graph: Graph, context: PassContext) -> None:
    """Raises PluginError for a result that breaks the contract of passes."""
    if not isinstance(graph, Graph):
        raise PluginError(f"{_who(entry)} returned {type(graph).__name__}, not a Graph", plugin=entry.plugin,
                          hint=_remedy(entry))
    for name in sorted(context.kept - graph.nodes.keys()):
        raise PluginError(f"{_who(entry)} lost the node '{name}', which is fed, fetched or run", node=name,
                          plugin=entry.plugin, hint="a pass keeps all nodes that `context.kept` names")
    try:
        verify(graph)
    except HealdError as error:
        raise PluginError(f"{_who(entry)} returned a malformed graph: {error.message}", node=error.node, op=error.op,
                          plugin=entry.plugin, hint=_remedy(entry)) from error


def _who(entry: GraphPass) -> str:
    return f"pass '{entry.name}' of plugin {entry.plugin}"


def _remedy(entry: GraphPass) -> str:
    return f"report it to the authors of plugin {entry.plugin}; [passes] disable = ['{entry.name}'] leaves it out"


def _module_of(entry: GraphPass) -> str:
    function = entry.function
    return function.partition(":")[0] if isinstance(function, str) else getattr(function, "__module__", "") or ""


def has_node(graph: Graph, node: Node) -> bool:
    """True when the graph has this node, apart from its inputs."""
    original = graph.nodes.get(node.name)
    return (original is not None and original.op == node.op and original.device == node.device
            and original.attrs is node.attrs)


def loop_substitutes(before: Graph, after: Graph) -> Set[str]:
    """The nodes that a pass added while it removed a loop; none where all loops are left."""
    loops = {node.name for node in before if _is_loop(node)} if after is not before else ()
    if all(name in after and _is_loop(after[name]) for name in loops):
        return set()
    return after.nodes.keys() - before.nodes.keys()


def _is_loop(node: Node) -> bool:
    return node.op in CONTROL_FLOW and CONTROL_FLOW[node.op].is_loop


def merge_placements(
    graph: Graph, placement: Placement, order: Sequence[Resolved], new_placement: Placement,
    free_names: Set[str] = frozenset(),
) -> Placement | str:
    """Return a placement of the graph after passes, or the reason why a new node among those to be run cannot be there.

    The graph's own nodes stay where `placement` has them, new nodes go where `new_placement` has them. A new node must
    not be refused where it asks to be. Without a request it must go to a device that the graph uses already. The nodes
    `free_names` only need a device: the turns of the loops in whose place they are take longer than any device.
    """
    used = {row.device for row in placement.values()}
    for entry in order:
        if entry.op.name not in NO_KERNEL and not has_node(graph, entry.node):
            row, is_free = new_placement[entry.node.name], entry.node.name in free_names
            why = _reason_against(row, placement.get(entry.node.name), used) if not is_free or row.error else None
            if why is not None:
                return f"{entry.op.name} '{entry.node.name}': {why}"
    kept_rows = {entry.node.name: placement[entry.node.name] for entry in order if has_node(graph, entry.node)}
    return Placement({**new_placement, **kept_rows}, placement.kernels)


def _reason_against(row: Assignment, original_row: Assignment | None, used: Collection[str | None]) -> str | None:
    """Return the reason why a new node cannot stay where it is placed, or None.

    `original_row` is the row of the graph's own node with the same name, if there was one.
    """
    if row.error is not None:
        return row.error.message
    refused = None if original_row is not None and original_row.refused else _refused_elsewhere(row)
    if refused is None and not row.requested and row.device not in used:
        return f"it would go to {row.device}, where nothing of the graph runs"
    return refused


def _refused_elsewhere(row: Assignment) -> str | None:
    """Return why a device of another type than the node's refused it, or None.

    Refusals by its own type do not count.
    """
    device_type = (row.device or "").partition(":")[0]
    return next((f"{candidate}: {why}" for candidate, why in row.refused
                 if candidate.partition(" ")[0].partition(":")[0] != device_type), None)


class NodeFacts:
    """Facts about nodes while passes change the graph around them: `resolve` and `infer` of PassContext.

    `nodes`: the session's resolved nodes.
    `fed`: metadata of the fed tensors.
    `fold`: returns known outputs of a node with their elements, if it can compute them.
    """

    def __init__(
        self, graph: Graph, nodes: Mapping[str, Resolved | HealdError], fed: Mapping[Tensor, TensorMetadata],
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
            except HealdError:
                self._known[node] = None
        return self._known[node]

    def infer(self, graph: Graph) -> Inferred:
        return Inferred(graph, self.resolve, self._outputs)

    def _outputs(self, entry: Resolved, inputs: Sequence[ValueInfo]) -> tuple[ValueInfo, ...]:
        outputs = infer_node(entry, inputs, self._ops)
        name = entry.node.name
        if entry.op.name in MUST_FEED:
            outputs = (ValueInfo(fed_metadata(entry, 0, self._graph.versions.producer)),)
        elif entry.op.name != CONST:
            outputs = self._fold(entry, inputs, outputs)
        if name not in self._fed_nodes:
            return outputs
        return tuple(ValueInfo(self._fed[name, i]) if (name, i) in self._fed else output
                     for i, output in enumerate(outputs))


class Inferred(Mapping[str, tuple[ValueInfo, ...]]):
    """Known facts about the outputs of a graph's nodes, inferred on demand.

    `outputs` infers them for one node from the facts about its inputs.
    """

    def __init__(
        self, graph: Graph, resolve: Callable[[Node], Resolved | None],
        outputs: Callable[[Resolved, Sequence[ValueInfo]], tuple[ValueInfo, ...]],
    ) -> None:
        self._resolve = resolve
        self._outputs = outputs
        self._nodes = {node.name: node for node in topological_order(graph)}
        self._number = {name: number for number, name in enumerate(self._nodes)}
        self._inferred: dict[str, tuple[ValueInfo, ...] | None] = {}  # None for a node that does not fit its op

    def __getitem__(self, name: str) -> tuple[ValueInfo, ...]:
        if name not in self._inferred:
            for needed in sorted(self._uninferred_sources(name), key=self._number.__getitem__):
                self._inferred[needed] = self._infer(self._nodes[needed])
        outputs = self._inferred[name]
        if outputs is None:
            raise KeyError(name)
        return outputs

    def __iter__(self) -> Iterator[str]:
        return (name for name, node in self._nodes.items() if self._resolve(node) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _uninferred_sources(self, name: str) -> set[str]:
        """Return the node and all its direct and indirect sources that have not been inferred yet."""
        needed: set[str] = set()
        stack = [name] if name in self._nodes else []
        while stack:
            taker = stack.pop()
            needed.add(taker)
            stack += {source.node for source in self._nodes[taker].inputs
                      if self._number.get(source.node, len(self._nodes)) < self._number[taker]
                      and source.node not in self._inferred} - needed
        return needed

    def _infer(self, node: Node) -> tuple[ValueInfo, ...] | None:
        entry = self._resolve(node)
        if entry is None:
            return None
        inputs = [self._output(source) or info(tensor.dtype, None)
                  for source, tensor in zip(entry.inputs, entry.input_tensors, strict=True)]
        return self._outputs(entry, inputs)

    def _output(self, source: Tensor) -> ValueInfo | None:
        outputs = self._inferred.get(source[0]) or ()
        return outputs[source[1]] if source[1] < len(outputs) else None
