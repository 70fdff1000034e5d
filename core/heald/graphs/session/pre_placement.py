"""The graph of a session: passes of the stage "pre_placement" make it of the given graph, once per session.

A pass may read the values of initializers, and remove the targets of those that it has replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...errors import HealdError, PluginError
from ...runtime.contract.graph_pass import PRE_PLACEMENT, GraphPass, PassContext, ordered_passes
from ...runtime.contract.loader import Initializer
from ...runtime.service.runtime import Runtime
from ..compiler.colocation import with_successors_as_partners
from ..compiler.function_body import with_partitioned_calls
from ..compiler.pass_manager import NodeFacts, run_passes
from ..graph.graph import Graph
from .constant_folding import ConstantFolder


def enabled_passes(runtime: Runtime, stage: str) -> list[GraphPass]:
    """Return the passes of a stage that config does not disable, in order. Raises PluginError for a cycle."""
    disabled, passes = runtime.config.passes.disable, runtime.host.registries.passes
    return ordered_passes([graph_pass for name, graph_pass in passes.items() if name not in disabled], stage)


def run_pre_placement_passes(
    graph: Graph, initial_state: Sequence[Initializer], runtime: Runtime
) -> Iterator[tuple[str, Graph]]:
    """Yield the graph under "", and then the graph after each pass of the stage "pre_placement" under the pass's name.
    Nodes whose op is a function of the graph are calls of it.

    Raises the errors of `run_passes`, and the error of an initializer whose values a pass asks for and cannot get.
    """
    graph = with_partitioned_calls(graph)
    yield "", graph
    passes, failed = enabled_passes(runtime, PRE_PLACEMENT), list[HealdError]()
    if not passes:
        return

    def recording_failure(values: Callable[[], Mapping[str, Any]]) -> Callable[[], Mapping[str, Any]]:
        def read() -> Mapping[str, Any]:
            try:
                return values()
            except HealdError as error:
                failed.append(error)
                raise
        return read

    ops = runtime.host.registries.ops
    facts = NodeFacts(graph, {}, {}, ops, ConstantFolder(runtime.host))
    state = tuple(initializer._replace(values=recording_failure(initializer.values)) for initializer in initial_state)
    try:
        context = PassContext(frozenset(), facts.resolve, facts.infer, state, ops)
        for graph_pass in passes:
            for name, changed in run_passes(graph, [graph_pass], context):
                graph = with_successors_as_partners(graph, changed)
                yield name, graph
    except PluginError as error:
        if failed and error.__cause__ is failed[-1]:  # the fault is the file's, not the pass's
            raise failed[-1] from None
        raise
