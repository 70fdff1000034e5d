"""StepGraph: the part of a session's graph that a step needs, and the graph that passes make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..compiler.pass_manager import NodeFacts, run_passes
from ..compiler.place import Placement
from ..compiler.prune import Tensor, prune
from ..compiler.resolve import Resolved, resolve
from ..contract.graph_pass import GraphPass, PassContext
from ..contract.structural import PLACEHOLDER
from ..errors import WeftError
from ..graph.graph import Graph, Node
from ..host.host import Host
from ..values.tensor import TensorMetadata
from .constant_folding import ConstantFolder

Nodes = Mapping[str, Resolved | WeftError]


class StepSignature(NamedTuple):
    """The tensors that a step is fed, the tensors that it returns, and the nodes that it runs for their effects."""

    fed: Mapping[Tensor, TensorMetadata]
    wanted: Sequence[Tensor]
    acting: Sequence[str]


class PlannedGraph(NamedTuple):
    """A graph, its resolved nodes, and the nodes to be run, in order."""

    graph: Graph
    nodes: Nodes
    order: Sequence[Resolved]


class StepGraph:
    """The part of `graph` that a signature demands, rewritten by passes.

    `made`: the graph after all passes but those in `left_out`; it exists once the graph is `placed`.
    `left_out`: pass to the reason why its graph cannot run.

    A `check` argument is called between passes; it raises to end the work.
    """

    def __init__(
        self, graph: Graph, nodes: Nodes, signature: StepSignature, passes: Sequence[GraphPass], host: Host
    ) -> None:
        self.left_out: dict[str, str] = {}
        self._signature, self._passes, self._host = signature, passes, host
        self._plain = PlannedGraph(graph, nodes, prune(nodes, *signature))
        self._stand_ins = self._placeholders()
        self._made: PlannedGraph | None = None

    @property
    def made(self) -> PlannedGraph:
        assert self._made is not None
        return self._made

    def _make(self, check: Callable[[], object]) -> PlannedGraph:
        if len(self.left_out) == len(self._passes):
            return self._plain
        *_, (_, graph) = self.stages(check)
        return self._finished(graph)

    @property
    def left_out_text(self) -> str:
        return "; ".join(f"pass '{name}': {why}" for name, why in self.left_out.items())

    def stages(self, check: Callable[[], object]) -> Iterator[tuple[str, Graph]]:
        """Yield the needed part of the graph under "", and then the graph after each pass under the pass's name."""
        graph, nodes, order = self._plain
        fed, wanted, acting = self._signature
        kept = frozenset(node for node, _ in (*fed, *wanted)).union(acting)
        needed = {entry.node.name for entry in order}.union(kept)
        start = graph.replace(without=[name for name in graph.nodes if name not in needed], nodes=self._stand_ins)
        check()
        yield "", start
        facts = NodeFacts(graph, nodes, fed, self._host.registries.ops, ConstantFolder(self._host))
        passes = [entry for entry in self._passes if entry.name not in self.left_out]
        for name, graph_after in run_passes(start, passes, PassContext(kept, facts.resolve, facts.infer)):
            check()
            yield name, graph_after

    def placed(self, place: Callable[[PlannedGraph], Placement | str], check: Callable[[], object]) -> Placement:
        """Return a placement of the graph after passes. `place` returns one, or the reason why there is none.

        For each reason, the first pass whose graph cannot be placed is left out, until a placement is found.
        """
        while True:
            if self._made is None:
                self._made = self._make(check)
            found = place(self._made)
            if not isinstance(found, str):
                return found
            tried = ((name, place(self._finished(graph))) for name, graph in self.stages(check))
            name, why = next((name, why) for name, why in tried if isinstance(why, str))
            self.left_out[name] = why
            self._made = None

    def _finished(self, graph: Graph) -> PlannedGraph:
        """Resolve and prune the graph after passes.

        Nodes that passes did not get or removed return to it, when others name them for colocation or they give the
        types of feeds.
        """
        own = self._plain.graph
        stand_ins = {node.name for node in self._stand_ins}
        if stand_ins or any("_class" in node.attrs for node in own):
            graph = graph.replace(nodes=[node for node in own if node.name not in graph or node.name in stand_ins])
        nodes = resolve(graph, self._host.registries.ops)
        return PlannedGraph(graph, nodes, prune(nodes, *self._signature))

    def _placeholders(self) -> list[Node]:
        """Placeholders for fed nodes that are not computed: the inputs of these nodes are absent from the graph."""
        _, nodes, order = self._plain
        computed = {entry.node.name for entry in order}
        given = [nodes[name] for name in dict.fromkeys(name for name, _ in self._signature.fed) if name not in computed]
        return [Node(entry.node.name, PLACEHOLDER, attrs={"dtype": entry.output_tensors[0].dtype})
                for entry in given if isinstance(entry, Resolved) and (entry.inputs or entry.node.controls)]
