"""PlacedGraph: a graph with the device of each of its nodes, also after passes have changed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..compiler.pass_manager import is_of, placed_alike
from ..compiler.place import Assignment, Placement, Placer
from ..compiler.resolve import Resolved, resolve
from ..config.placement import PlacementConfig
from ..errors import WeftError
from ..graph.graph import Graph
from ..host.host import Host

Nodes = Mapping[str, Resolved | WeftError]
Refusals = Iterable[tuple[str, str, str, str]]  # node, device, pack, reason


class PlannedGraph(NamedTuple):
    """A graph, its resolved nodes, and the nodes to be run, in order."""

    graph: Graph
    nodes: Nodes
    order: Sequence[Resolved]


class Placers:
    """The placers of one session. Kernels that decline when they are bound are not chosen again.

    `own`: places the nodes of the session's graph and of its functions.
    `trial`: places the nodes of passes, which are used only in the right place: so refusals give no warning.
    `declined`: the number of times that kernels declined.
    """

    def __init__(self, host: Host, config: PlacementConfig, device: str | None) -> None:
        kernels = host.registries.kernels
        self.own = Placer(host, kernels, config, device)
        self.trial = Placer(host, kernels, replace(config, fallback="allow"), device)
        self.declined = 0


class PlacedGraph:
    """A graph before passes: its resolved nodes, and their placement."""

    def __init__(self, graph: Graph, placers: Placers, host: Host) -> None:
        self.graph = graph
        self.nodes: Nodes = resolve(graph, host.registries.ops)
        self._placers = placers
        self._placement = _place(graph, self.nodes, placers.own)
        self._declined = placers.declined

    @property
    def placement(self) -> Placement:
        """The placement without the kernels that have declined by now."""
        if self._declined != self._placers.declined:
            self._placement, self._declined = _place(self.graph, self.nodes, self._placers.own), self._placers.declined
        return self._placement

    def placed(self, planned: PlannedGraph) -> Placement | str:
        """Return a placement of the graph after passes, or the reason why a node of theirs cannot run in the right
        place."""
        if all(is_of(self.graph, entry.node) for entry in planned.order):
            return self.placement
        anew = _place(planned.graph, planned.nodes, self._placers.trial)
        return placed_alike(self.graph, self.placement, planned.order, anew)

    def decline(self, refusals: Refusals, after_passes: Graph) -> None:
        """Remember kernels that declined nodes of the graph after passes.

        Later graphs after passes do without these kernels, too.
        """
        for refusal in refusals:
            self._placers.trial.decline(*refusal)
            node = after_passes.nodes.get(refusal[0])
            if node is None or is_of(self.graph, node):
                self._placers.own.decline(*refusal)
        self._placers.declined += 1


def _place(graph: Graph, nodes: Nodes, placer: Placer) -> Placement:
    return placer.place(nodes, {name: (node.op, node.device) for name, node in graph.nodes.items()})


def with_rows(placement: Placement, rows: Mapping[str, Assignment]) -> Placement:
    """Return the placement with these rows in place of its own, and behind them."""
    return Placement({**placement, **rows}) if rows else placement
