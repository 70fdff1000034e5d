"""Passes on request: graph passes that a user names, over a whole graph and outside of any session's step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ...errors import InvalidArgument, NotFound, closest
from ...runtime.contract.graph_pass import PRE_PLACEMENT, GraphPass, PassContext
from ...runtime.service.runtime import Runtime
from ..compiler.colocation import with_successors_as_partners
from ..compiler.pass_manager import NodeFacts, run_passes
from ..graph.graph import Graph
from ..graph.node import parse_input
from .constant_folding import ConstantFolder


def run_requested_passes(
    graph: Graph, names: Sequence[str], kept_names: Collection[str], runtime: Runtime, *, feeds: Sequence[str] = (),
    fetches: Sequence[str] = (), entry: str | None = None,
) -> Iterator[tuple[str, Graph]]:
    """Yield the name of each requested pass and the graph after it, in the order of `names`.

    `kept_names`: names of nodes that stay, with the values that they return.
    `feeds`, `fetches`, `entry`: as in PassContext. The nodes of feeds and fetches stay, too.

    Raises NotFound for an unknown feed or fetch and for a pass that no plugin registers, InvalidArgument for a pass of
    the stage "pre_placement", and the errors of `run_passes`.
    """
    ops, named = runtime.host.registries.ops, [graph[parse_input(tensor).node].name for tensor in (*feeds, *fetches)]
    # facts are of one graph: a pass may change functions
    for graph_pass in [_pass_on_request(name, runtime) for name in names]:
        facts = NodeFacts(graph, {}, {}, ops, ConstantFolder(runtime.host))
        context = PassContext(frozenset((*kept_names, *named)), facts.resolve, facts.infer, (), ops, tuple(feeds),
                              tuple(fetches), entry)
        for name, changed in run_passes(graph, [graph_pass], context):
            graph = with_successors_as_partners(graph, changed)
            yield name, graph


def _pass_on_request(name: str, runtime: Runtime) -> GraphPass:
    passes = {key: entry for key, entry in runtime.host.registries.passes.items() if entry.stage != PRE_PLACEMENT}
    if name in passes:
        return passes[name]
    if name in runtime.host.registries.passes:
        raise InvalidArgument(f"the pass '{name}' is part of loading a model, and is not run by name",
                              hint="--freeze runs the passes of that stage")
    suggestions = closest(name, [*passes])
    raise NotFound(f"no plugin has a graph pass '{name}'",
                   hint=f"did you mean {suggestions[0]}?" if suggestions else "heald opt --list-passes lists them")
