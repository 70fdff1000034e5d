"""PlacedGraph: a graph with the device of each of its nodes, also after passes have changed it.

A pass keeps the devices that a graph requests. Nodes that passes leave alone keep the session's placement. New nodes
are placed by `Placers.trial`; where one of them cannot run, the graph does without the pass. A node in the place of a
loop may run on any device, unless a request that is not met is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType

from ...errors import FailedPrecondition, HealdError
from ...runtime.config.placement import PlacementConfig
from ...runtime.contract.placement import Assignment, Placement
from ...runtime.contract.structural import MUST_FEED
from ...runtime.host.host import Host
from ...runtime.support.records import NamedTuple
from ..compiler.infer_node import fed_metadata
from ..compiler.node_cost import NodeCosts
from ..compiler.pass_manager import NodeFacts, has_node, merge_placements
from ..compiler.place import Placer
from ..compiler.resolve import Resolved, resolve
from ..graph.graph import Graph
from .step_statistics import read_statistics

Nodes = Mapping[str, Resolved | HealdError]
Refusals = Iterable[tuple[str, str, str, str]]  # node, device, pack, reason


class PlannedGraph(NamedTuple):
    """A graph, its resolved nodes, and the nodes to be run, in order."""

    graph: Graph
    nodes: Nodes
    order: Sequence[Resolved]


class Placers:
    """The placers of one session. Kernels that decline when they are bound are not chosen again.

    `graph_placer`: places the nodes of the session's graph and of its functions.
    `trial`: places the nodes of passes, which are used only in the right place: so refusals give no warning.
    `is_strict`: True when a request that is not met is an error.
    `declined`: the number of times that kernels declined.

    Raises the errors of `read_statistics`.
    """

    def __init__(self, host: Host, config: PlacementConfig, device: str | None) -> None:
        kernels = host.registries.kernels
        self.graph_placer = Placer(host, kernels, config, device)
        self.trial = Placer(host, kernels, replace(config, fallback="allow"), device)
        self.is_strict = config.fallback == "error"
        self.declined = 0
        self._ops = host.registries.ops
        self._statistics = {} if config.statistics is None else read_statistics(config.statistics)

    def place(
        self, placer: Placer, graph: Graph, nodes: Nodes, fixed: Mapping[str, str] = MappingProxyType({})
    ) -> Placement:
        """Place the nodes of a graph. `fixed`: devices that nodes request in place of their own requests."""
        def costs(entries: Mapping[str, Resolved]) -> NodeCosts:
            fed = {(name, 0): fed_metadata(entry, 0, graph.versions.producer) for name, entry in entries.items()
                   if entry.op.name in MUST_FEED}
            facts = NodeFacts(graph, entries, fed, self._ops, lambda _, __, outputs: outputs).infer(graph)
            return NodeCosts(entries, facts, self._ops, self._statistics)

        ops = {name: (node.op, fixed.get(name, node.device)) for name, node in graph.nodes.items()}
        return placer.place(nodes, ops, costs)


class PlacedGraph:
    """A graph before passes: its resolved nodes, and their placement.

    `fixed`: rows of nodes that have their places already.
    """

    def __init__(
        self, graph: Graph, placers: Placers, host: Host, fixed: Mapping[str, Assignment] = MappingProxyType({})
    ) -> None:
        self.graph = graph
        self.nodes: Nodes = resolve(graph, host.registries.ops)
        self._placers, self._host, self._fixed = placers, host, fixed
        self._placement = self._place()
        self._declined = placers.declined

    def extend(self, graph: Graph) -> PlacedGraph:
        """Return the placement of a graph with further nodes. The nodes of this graph stay where they are.

        Raises FailedPrecondition when a node of this graph is another one there.
        """
        for name, node in self.graph.nodes.items():
            other = graph.nodes.get(name)
            if other is None or (other.op, other.inputs, other.controls) != (node.op, node.inputs, node.controls):
                raise FailedPrecondition(f"with the new nodes a pass changes '{name}', which steps of the session have "
                                         "as it is", node=name, op=node.op, hint="make one session of the whole graph")
        return self.changed(graph)

    def changed(self, graph: Graph) -> PlacedGraph:
        """Return the placement of a graph of these nodes, maybe with other inputs, and of others."""
        fixed = {name: row for name, row in self.placement.items() if row.device}
        return PlacedGraph(graph, self._placers, self._host, fixed)

    @property
    def placement(self) -> Placement:
        """The placement without the kernels that have declined by now."""
        if self._declined != self._placers.declined:
            self._placement, self._declined = self._place(), self._placers.declined
        return self._placement

    def device_of_request(self, text: str) -> str | None:
        """Return the short name of the usable device that a request asks for, or None."""
        return self._placers.graph_placer.device_of_request(text)

    def _place(self) -> Placement:
        fixed = self._fixed
        requests = {name: str(row.device) for name, row in fixed.items()}
        placement = self._placers.place(self._placers.graph_placer, self.graph, self.nodes, requests)
        same = {name: row for name, row in fixed.items() if placement[name].kernel is row.kernel
                and placement[name].device == row.device}
        return with_rows(placement, same)

    def placement_after_passes(self, planned: PlannedGraph, loop_substitutes: Set[str]) -> Placement | str:
        """Return a placement of the graph after passes, or the reason why a node of theirs cannot run in the right
        place. `loop_substitutes`: the nodes that passes put in the place of loops."""
        if all(has_node(self.graph, entry.node) for entry in planned.order):
            return self.placement
        new_placement = self._placers.place(self._placers.trial, planned.graph, planned.nodes)
        return merge_placements(self.graph, self.placement, planned.order, new_placement,
                                frozenset() if self._placers.is_strict else loop_substitutes)

    def decline(self, refusals: Refusals, after_passes: Graph) -> None:
        """Remember kernels that declined nodes of the graph after passes.

        Later graphs after passes do without these kernels, too.
        """
        for refusal in refusals:
            self._placers.trial.decline(*refusal)
            node = after_passes.nodes.get(refusal[0])
            if node is None or has_node(self.graph, node):
                self._placers.graph_placer.decline(*refusal)
        self._placers.declined += 1


def with_rows(placement: Placement, rows: Mapping[str, Assignment]) -> Placement:
    """Return the placement with these rows in place of its own, and behind them."""
    return Placement({**placement, **rows}, placement.kernels) if rows else placement
