"""Effects of a step: whether its runs change, or depend on, more than their feeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import NotFound
from ...runtime.contract.structural import CONTROL_FLOW, MUST_FEED
from ...runtime.host.host import Host
from ..compiler.resolve import Resolved
from ..graph.graph import Graph


def has_effects(graph: Graph, needed: Sequence[Resolved], host: Host) -> bool:
    """Return True when a needed node, or a node of a function of the graph if one is called, is of a stateful op.

    A call counts by its function's nodes. An op that no plugin brings counts as stateful.
    """
    names = [entry.op.name for entry in needed]
    if _any_stateful(names, graph, host):
        return True
    if not any(name in CONTROL_FLOW for name in names):
        return False
    return any(_any_stateful((node.op for node in function.nodes.values()), graph, host)
               for function in graph.functions.values())


def _any_stateful(ops: Iterable[str], graph: Graph, host: Host) -> bool:
    return any(_is_stateful(op, host) for op in {*ops} - CONTROL_FLOW.keys() - MUST_FEED - graph.functions.keys())


def _is_stateful(op: str, host: Host) -> bool:
    try:
        return host.registries.ops.get(op).stateful
    except NotFound:
        return True
