"""FunctionGraph: one function of a program while it is compiled, as a graph with feeds, fetches and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ...errors import InvalidArgument
from ...runtime.contract.graph_pass import GraphPass, PassContext
from ...runtime.contract.placement import Placement
from ...runtime.contract.structural import PLACEHOLDER
from ...runtime.host.host import Host
from ...runtime.values.dtypes import DType
from ...runtime.values.tensor import TensorMetadata, ValueInfo
from ..compiler.call_site import CallSite
from ..compiler.pass_manager import NodeFacts, run_passes
from ..compiler.prune import Tensor, prune
from ..compiler.resolve import Resolved, resolve
from ..graph.graph import Graph, Node
from .constant_folding import ConstantFolder
from .placed_graph import PlacedGraph, Placers, PlannedGraph


class StepSignature(NamedTuple):
    """The tensors that a step is fed, the tensors that it returns, and the nodes that it runs for their effects."""

    fed: Mapping[Tensor, TensorMetadata]
    wanted: Sequence[Tensor]
    acting: Sequence[str]


class Environment(NamedTuple):
    """What all steps of a session share: host, placers, passes of the stage "graph", whether calls are fused."""

    host: Host
    placers: Placers
    passes: Sequence[GraphPass]
    fuses: bool
    fold: ConstantFolder


class FunctionGraph:
    """One function of a program while it is compiled: the part of a graph that its signature demands, after passes.

    `name`: the function's name in the program.
    `placed`: the graph before passes.
    `around`: node to the functions that it is in, the outermost first; under "" those of all other nodes.
    `depth`: the number of functions around this one.
    `left_out`: pass to the reason why its graph cannot run.

    A `check` argument is called between passes; it raises to end the work.
    """

    def __init__(
        self, name: str, placed: PlacedGraph, signature: StepSignature, order: Sequence[Resolved], env: Environment,
        around: Mapping[str, tuple[str, ...]], depth: int = 0, has_effects: bool = False,
    ) -> None:
        self.name = name
        self.placed = placed
        self.signature = signature
        self.depth = depth
        self.has_effects = has_effects
        self.takes_dead = False  # its arguments may be dead: it is one iteration of a frame
        self.left_out: dict[str, str] = {}
        self.sites: dict[str, CallSite] = {}
        self._around, self._env = around, env
        self._plain = PlannedGraph(placed.graph, placed.nodes, order)
        self._stand_ins = stand_ins(self._plain, signature)
        self._after_passes: PlannedGraph | None = None

    @property
    def after_passes(self) -> PlannedGraph:
        """The graph after all passes but those in `left_out`. It exists once `place` was called."""
        assert self._after_passes is not None
        return self._after_passes

    def around(self, node: str) -> tuple[str, ...]:
        return self._around.get(node, self._around.get("", ()))

    def stages(self, check: Callable[[], object]) -> Iterator[tuple[str, Graph]]:
        """Yield the needed part of the graph under "", and then the graph after each pass under the pass's name."""
        graph, nodes, order = self._plain
        fed, wanted, acting = self.signature
        kept = frozenset(node for node, _ in (*fed, *wanted)).union(acting)
        start = needed_part(graph, order, kept, self._stand_ins)
        check()
        yield "", start
        ops = self._env.host.registries.ops
        facts = NodeFacts(graph, nodes, fed, ops, self._env.fold)
        passes = [entry for entry in self._env.passes if entry.name not in self.left_out]
        context = PassContext(kept, facts.resolve, facts.infer, ops=ops)
        for name, graph_after in run_passes(start, passes, context):
            check()
            yield name, graph_after

    def place(self, check: Callable[[], object]) -> Placement:
        """Return a placement of the graph after passes.

        While there is none, the first pass whose graph cannot be placed is left out.
        """
        while True:
            if self._after_passes is None:
                self._after_passes, self.sites = self._make(check), {}
            found = self.placed.placed(self._after_passes)
            if not isinstance(found, str):
                return found
            tried = ((name, self.placed.placed(self._finished(graph))) for name, graph in self.stages(check))
            name, why = next((name, why) for name, why in tried if isinstance(why, str))
            self.left_out[name] = why
            self._after_passes = None

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
        """Return what is known of each output after passes: dtype, shape and, of constants, the value, by node name."""
        graph, nodes, _ = self.after_passes
        return NodeFacts(graph, nodes, self.signature.fed, self._env.host.registries.ops, self._env.fold).infer(graph)

    def _make(self, check: Callable[[], object]) -> PlannedGraph:
        if len(self.left_out) == len(self._env.passes):
            return self._plain
        *_, (_, graph) = self.stages(check)
        return self._finished(graph)

    def _finished(self, graph: Graph) -> PlannedGraph:
        """Resolve and prune the graph after passes.

        Nodes that passes did not get or removed return to it, when others name them for colocation or they give the
        types of feeds.
        """
        own = self._plain.graph
        fed = {node.name for node in self._stand_ins}
        if fed or any("_class" in node.attrs for node in own):
            graph = graph.replace(nodes=[node for node in own if node.name not in graph or node.name in fed])
        nodes = resolve(graph, self._env.host.registries.ops)
        return PlannedGraph(graph, nodes, prune(nodes, *self.signature))


def needed_part(
    graph: Graph, order: Sequence[Resolved], kept: AbstractSet[str], fed: Sequence[Node]
) -> Graph:
    """Return the part of the graph that has these nodes."""
    needed = {entry.node.name for entry in order}.union(kept)
    return graph.replace(without=[name for name in graph.nodes if name not in needed], nodes=fed)


def stand_ins(planned: PlannedGraph, signature: StepSignature) -> list[Node]:
    """Placeholders for fed nodes that are not computed: the inputs of these nodes are absent from the graph."""
    computed = {entry.node.name for entry in planned.order}
    fed = dict.fromkeys(name for name, _ in signature.fed)
    given = [planned.nodes[name] for name in fed if name not in computed]
    return [Node(entry.node.name, PLACEHOLDER, attrs={"dtype": entry.output_tensors[0].dtype})
            for entry in given if isinstance(entry, Resolved) and (entry.inputs or entry.node.controls)]
