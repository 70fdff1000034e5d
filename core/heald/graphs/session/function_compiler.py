"""FunctionCompiler: one function of a program while it is compiled, as a graph with feeds, fetches and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ...errors import InvalidArgument
from ...runtime.contract.graph_pass import GraphPass, PassContext
from ...runtime.contract.placement import Placement
from ...runtime.contract.structural import PLACEHOLDER
from ...runtime.host.host import Host
from ...runtime.support.records import NamedTuple
from ...runtime.values.dtypes import DType
from ...runtime.values.tensor import TensorMetadata, ValueInfo
from ..compiler.call_site import CallSite
from ..compiler.pass_manager import NodeFacts, loop_substitutes, run_passes
from ..compiler.prune import Tensor, prune
from ..compiler.resolve import Resolved, resolve
from ..graph.graph import Graph, Node
from .constant_folding import ConstantFolder
from .graph_placement import PlacedGraph, Placers, PlannedGraph


class StepSignature(NamedTuple):
    """The tensors that a step is fed, the tensors that it returns, and the nodes that it runs for their effects."""

    fed: Mapping[Tensor, TensorMetadata]
    fetched: Sequence[Tensor]
    targets: Sequence[str]


class Environment(NamedTuple):
    """The host, the placers, the passes of the stage "graph" and the folder of a session. All its steps share them.

    `fuses`: True when calls are fused.
    """

    host: Host
    placers: Placers
    passes: Sequence[GraphPass]
    fuses: bool
    fold: ConstantFolder


class FunctionCompiler:
    """One function of a program while it is compiled: the part of a graph that its signature demands, after passes.

    `name`: the function's name in the program.
    `placed_graph`: the graph before passes.
    `outer_functions`: node to the functions that it is in, the outermost first; under "" the functions of all other
        nodes.
    `depth`: the number of functions around this one.
    `skipped_passes`: pass to the reason why its graph cannot run.

    A `check` argument is called between passes; it raises to end the work.
    """

    def __init__(
        self, name: str, placed: PlacedGraph, signature: StepSignature, order: Sequence[Resolved], env: Environment,
        outer_functions: Mapping[str, tuple[str, ...]], depth: int = 0, has_effects: bool = False,
    ) -> None:
        self.name = name
        self.placed_graph = placed
        self.signature = signature
        self.depth = depth
        self.has_effects = has_effects
        self.takes_dead = False  # its arguments may be dead: it is one iteration of a frame
        self.skipped_passes: dict[str, str] = {}
        self.sites: dict[str, CallSite] = {}
        self._outer_functions, self._env = outer_functions, env
        self._plain = PlannedGraph(placed.graph, placed.nodes, order)
        self._feed_placeholders = placeholders_for_feeds(self._plain, signature)
        self._after_passes: PlannedGraph | None = None
        self._loop_substitutes: set[str] = set()  # nodes that passes put in the place of loops

    @property
    def after_passes(self) -> PlannedGraph:
        """The graph after all passes but those in `skipped_passes`. It exists once `place` was called."""
        assert self._after_passes is not None
        return self._after_passes

    def outer_functions(self, node: str) -> tuple[str, ...]:
        return self._outer_functions.get(node, self._outer_functions.get("", ()))

    def graphs_by_pass(self, check: Callable[[], object]) -> Iterator[tuple[str, Graph]]:
        """Yield the needed part of the graph under "", and then the graph after each pass under the pass's name."""
        graph, nodes, order = self._plain
        fed, fetched, targets = self.signature
        kept_names = frozenset(node for node, _ in (*fed, *fetched)).union(targets)
        start = needed_part(graph, order, kept_names, self._feed_placeholders)
        check()
        yield "", start
        ops = self._env.host.registries.ops
        facts = NodeFacts(graph, nodes, fed, ops, self._env.fold)
        passes = [entry for entry in self._env.passes if entry.name not in self.skipped_passes]
        context = PassContext(kept_names, facts.resolve, facts.infer, ops=ops)
        before = start
        for name, graph_after in run_passes(start, passes, context):
            check()
            self._loop_substitutes |= loop_substitutes(before, graph_after)
            before = graph_after
            yield name, graph_after

    def place(self, check: Callable[[], object]) -> Placement:
        """Return a placement of the graph after passes.

        While there is none, the first pass whose graph cannot be placed is left out.
        """
        while True:
            if self._after_passes is None:
                self._after_passes, self.sites = self._graph_after_passes(check), {}
            placement = self._try_placement(self._after_passes)
            if not isinstance(placement, str):
                return placement
            tried = ((name, self._try_placement(self._resolve_and_prune(graph)))
                     for name, graph in self.graphs_by_pass(check))
            name, why = next((name, why) for name, why in tried if isinstance(why, str))
            self.skipped_passes[name] = why
            self._after_passes = None

    def _try_placement(self, planned: PlannedGraph) -> Placement | str:
        return self.placed_graph.placement_after_passes(planned, self._loop_substitutes)

    def result_type(self, tensor: Tensor) -> DType:
        """Return the type of a tensor of the graph before passes.

        Raises InvalidArgument for an output that its node lacks.
        """
        node, index = tensor
        entry = self._plain.nodes[node]
        if not isinstance(entry, Resolved):
            raise entry
        count = len(entry.output_tensors)
        if index >= count:
            raise InvalidArgument(f"the function returns output {index} of '{node}', which has {count}", node=node,
                                  op=entry.op.name)
        return entry.output_tensors[index].dtype

    def facts(self) -> Mapping[str, tuple[ValueInfo, ...]]:
        """Return the known facts about the outputs after passes, by node name: dtype, shape, a constant's value."""
        graph, nodes, _ = self.after_passes
        return NodeFacts(graph, nodes, self.signature.fed, self._env.host.registries.ops, self._env.fold).infer(graph)

    def _graph_after_passes(self, check: Callable[[], object]) -> PlannedGraph:
        if len(self.skipped_passes) == len(self._env.passes):
            return self._plain
        *_, (_, graph) = self.graphs_by_pass(check)
        return self._resolve_and_prune(graph)

    def _resolve_and_prune(self, graph: Graph) -> PlannedGraph:
        """Resolve and prune the graph after passes.

        Nodes that passes did not get or removed return to it, when others name them for colocation or they give the
        types of feeds.
        """
        original = self._plain.graph
        fed = {node.name for node in self._feed_placeholders}
        if fed or any("_class" in node.attrs for node in original):
            graph = graph.replace(nodes=[node for node in original if node.name not in graph or node.name in fed])
        nodes = resolve(graph, self._env.host.registries.ops)
        return PlannedGraph(graph, nodes, prune(nodes, *self.signature))


def needed_part(
    graph: Graph, order: Sequence[Resolved], kept_names: AbstractSet[str], fed: Sequence[Node]
) -> Graph:
    """Return the part of the graph that has these nodes."""
    needed = {entry.node.name for entry in order}.union(kept_names)
    return graph.replace(without=[name for name in graph.nodes if name not in needed], nodes=fed)


def placeholders_for_feeds(planned: PlannedGraph, signature: StepSignature) -> list[Node]:
    """Placeholders for fed nodes that are not computed: the inputs of these nodes are absent from the graph."""
    computed = {entry.node.name for entry in planned.order}
    fed = dict.fromkeys(name for name, _ in signature.fed)
    fed_entries = [planned.nodes[name] for name in fed if name not in computed]
    return [Node(entry.node.name, PLACEHOLDER, attrs={"dtype": entry.output_tensors[0].dtype})
            for entry in fed_entries if isinstance(entry, Resolved) and (entry.inputs or entry.node.controls)]
