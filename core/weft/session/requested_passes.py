"""Passes on request: graph passes that a user names, over a whole graph and outside of any session's step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..compiler.pass_manager import NodeFacts, run_passes
from ..contract.graph_pass import PRE_PLACEMENT, GraphPass, PassContext
from ..errors import InvalidArgument, NotFound, closest
from ..graph.graph import Graph
from .constant_folding import ConstantFolder
from .runtime import Runtime


def requested_graphs(
    graph: Graph, names: Sequence[str], kept: Collection[str], own: Runtime
) -> Iterator[tuple[str, Graph]]:
    """Yield the name of each requested pass and the graph after it, in the order of `names`.

    `kept`: names of nodes that stay, with the values that they return.

    Raises NotFound for a pass that no plugin registers, InvalidArgument for a pass of the stage "pre_placement", and
    the errors of `run_passes`.
    """
    passes = [_requested(name, own) for name in names]
    for entry in passes:  # facts are of one graph: a pass may change functions
        facts = NodeFacts(graph, {}, {}, own.host.registries.ops, ConstantFolder(own.host))
        context = PassContext(frozenset(kept), facts.resolve, facts.infer)
        for name, changed in run_passes(graph, [entry], context):
            yield name, changed
            graph = changed


def _requested(name: str, own: Runtime) -> GraphPass:
    known = {key: entry for key, entry in own.host.registries.passes.items() if entry.stage != PRE_PLACEMENT}
    if name in known:
        return known[name]
    if name in own.host.registries.passes:
        raise InvalidArgument(f"the pass '{name}' is part of loading a model, and is not run by name",
                              hint="weft edit --freeze runs the passes of that stage")
    near = closest(name, [*known])
    raise NotFound(f"no plugin has a graph pass '{name}'",
                   hint=f"did you mean {near[0]}?" if near else f"passes are {', '.join(sorted(known))}")
