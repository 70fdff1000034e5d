"""What a step needs of a session's graph, and what passes make of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..compiler.pass_manager import NodeFacts, run_passes
from ..compiler.place import Placement
from ..compiler.prune import Tensor, prune
from ..compiler.resolve import Resolved, resolve
from ..contract.graph_pass import GraphPass, PassContext
from ..errors import WeftError
from ..graph.graph import Graph, Node
from ..host.host import Host
from ..values.tensor import TensorMetadata
from .constant_folding import ConstantFolder

Nodes = Mapping[str, Resolved | WeftError]


class StepSignature(NamedTuple):
    """What a step is given, the tensors that it is to give, and the nodes that it is to run beside these."""

    fed: Mapping[Tensor, TensorMetadata]
    wanted: Sequence[Tensor]
    acting: Sequence[str]


class PlannedGraph(NamedTuple):
    """A graph, its nodes resolved, and those of them that are to be run, in order."""

    graph: Graph
    nodes: Nodes
    order: Sequence[Resolved]


class StepGraph:
    """`graph`, whose nodes are `nodes`, as far as it is demanded, step_graph by passes.

    `made` is what they make of it, but for those in `left_out`: by pass, why what it makes cannot be run; there is
    none before it is `placed`. A `check` is called between passes: it raises where the work is to end.
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
        """What is needed of the graph, under "", and then that after each pass, under its name."""
        graph, nodes, order = self._plain
        fed, wanted, acting = self._signature
        kept = frozenset(node for node, _ in (*fed, *wanted)).union(acting)
        needed = {entry.node.name for entry in order}.union(kept)
        start = graph.replace(without=[name for name in graph.nodes if name not in needed], nodes=self._stand_ins)
        check()
        yield "", start
        facts = NodeFacts(graph, nodes, fed, self._host.registries.ops, ConstantFolder(self._host))
        passes = [entry for entry in self._passes if entry.name not in self.left_out]
        for name, made in run_passes(start, passes, PassContext(kept, facts.resolve, facts.infer)):
            check()
            yield name, made

    def placed(self, place: Callable[[PlannedGraph], Placement | str], check: Callable[[], object]) -> Placement:
        """Where what is made goes. `place` tells that, or why it can go nowhere: then the first pass that makes
        something of which this is so is left out, as long as there is one."""
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
        """What the passes gave, with the nodes that they did not get or have taken away, where these tell what others
        are colocated with, or what types are fed."""
        own = self._plain.graph
        stand_ins = {node.name for node in self._stand_ins}
        if stand_ins or any("_class" in node.attrs for node in own):
            graph = graph.replace(nodes=[node for node in own if node.name not in graph or node.name in stand_ins])
        nodes = resolve(graph, self._host.registries.ops)
        return PlannedGraph(graph, nodes, prune(nodes, *self._signature))

    def _placeholders(self) -> list[Node]:
        """For the nodes that are fed and not computed as well: what these take is not there."""
        _, nodes, order = self._plain
        computed = {entry.node.name for entry in order}
        given = [nodes[name] for name in dict.fromkeys(name for name, _ in self._signature.fed) if name not in computed]
        return [Node(entry.node.name, "Placeholder", attrs={"dtype": entry.output_tensors[0].dtype})
                for entry in given if isinstance(entry, Resolved) and (entry.inputs or entry.node.controls)]
