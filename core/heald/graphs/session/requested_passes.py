"""Passes on request: graph passes that a user names, over a whole graph and outside of any session's step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ...errors import InvalidArgument, NotFound, closest
from ...runtime.contract.graph_pass import PRE_PLACEMENT, GraphPass, PassContext
from ...runtime.service.runtime import Runtime
from ..compiler.pass_manager import NodeFacts, run_passes
from ..graph.graph import Graph
from ..graph.node import parse_input
from .constant_folding import ConstantFolder


def requested_graphs(
    graph: Graph, names: Sequence[str], kept: Collection[str], own: Runtime, *, feeds: Sequence[str] = (),
    fetches: Sequence[str] = (), entry: str | None = None,
) -> Iterator[tuple[str, Graph]]:
    """Yield the name of each requested pass and the graph after it, in the order of `names`.

    `kept`: names of nodes that stay, with the values that they return.
    `feeds`, `fetches`, `entry`: as in PassContext. The nodes of feeds and fetches stay, too.

    Raises NotFound for an unknown feed or fetch and for a pass that no plugin registers, InvalidArgument for a pass of
    the stage "pre_placement", and the errors of `run_passes`.
    """
    ops, named = own.host.registries.ops, [graph[parse_input(tensor).node].name for tensor in (*feeds, *fetches)]
    for each in [_requested(name, own) for name in names]:  # facts are of one graph: a pass may change functions
        facts = NodeFacts(graph, {}, {}, ops, ConstantFolder(own.host))
        context = PassContext(frozenset((*kept, *named)), facts.resolve, facts.infer, (), ops, tuple(feeds),
                              tuple(fetches), entry)
        for name, changed in run_passes(graph, [each], context):
            yield name, changed
            graph = changed


def _requested(name: str, own: Runtime) -> GraphPass:
    known = {key: entry for key, entry in own.host.registries.passes.items() if entry.stage != PRE_PLACEMENT}
    if name in known:
        return known[name]
    if name in own.host.registries.passes:
        raise InvalidArgument(f"the pass '{name}' is part of loading a model, and is not run by name",
                              hint="--freeze runs the passes of that stage")
    near = closest(name, [*known])
    raise NotFound(f"no plugin has a graph pass '{name}'",
                   hint=f"did you mean {near[0]}?" if near else "heald opt --list-passes lists them")
