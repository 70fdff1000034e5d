"""Coverage: the nodes of a graph that registered kernels can run, found without opening a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...errors import HealdError
from ...graphs.compiler.call_site import call_site, labelled_functions
from ...graphs.compiler.function_body import function_body
from ...graphs.compiler.resolve import Resolved, resolve
from ...graphs.graph.graph import Graph, Node
from ...graphs.graph.traversal import ancestors, unconsumed_nodes
from ...runtime.contract.structural import CONTROL_FLOW, NO_KERNEL
from ...runtime.host.host import Host

Entry = Resolved | HealdError
Nodes = Mapping[str, Entry]


class Missing(NamedTuple):
    """Nodes of one op that nothing can run, for one reason."""

    op: str
    reason: str
    nodes: list[str]


def rewritten(graph: Graph) -> tuple[Graph, Nodes]:
    """The graph as a session runs it, after the passes that come before placement, and its resolved nodes."""
    from ...graphs.session.pre_placement import run_pre_placement_passes
    from ...runtime.service.runtime import runtime

    *_, (_, graph) = run_pre_placement_passes(graph, (), runtime())
    return graph, resolve(graph, runtime().host.registries.ops)


def sinks(graph: Graph, nodes: Nodes) -> list[str]:
    """The nodes whose results nobody takes, as Model finds a graph's outputs, those of unknown ops among them."""
    return [name for name in unconsumed_nodes(graph.nodes) if _may_give(nodes[name])]


def needed(graph: Graph, outputs: Iterable[str]) -> list[Node]:
    """The nodes that these tensors or nodes depend on, data and control, in the graph's order.

    Raises NotFound for a name that is not in the graph.
    """
    found = ancestors(graph.nodes, [graph[name.partition(":")[0]].name for name in outputs])
    return [node for node in graph if node.name in found]


def reached(order: Iterable[Node], nodes: Nodes, graph: Graph, host: Host) -> Iterator[tuple[Node, Entry]]:
    """These nodes, and those of the functions that they call: a function once for its types and attributes.

    A node whose functions cannot be called comes with the reason.
    """
    left = [(node, nodes[node.name]) for node in reversed([*order])]
    seen: set[tuple[Any, ...]] = set()
    while left:
        node, entry = left.pop()
        if isinstance(entry, Resolved) and entry.op.name in CONTROL_FLOW:
            try:
                left += _of_functions(entry, graph, host, seen)
            except HealdError as error:
                entry = error
        yield node, entry


def missing(reached: Iterable[tuple[Node, Entry]], host: Host) -> list[Missing]:
    """What stands in the way of running these nodes, most nodes first."""
    found: dict[tuple[str, str], tuple[Entry, list[str]]] = {}  # with the first of the nodes
    for node, entry in reached:
        reason = _lacks(entry, host)
        if reason is not None:
            found.setdefault((node.op, reason), (entry, []))[1].append(node.name)
    rows = [Missing(op, _with_hint(reason, first), names) for (op, reason), (first, names) in found.items()]
    return sorted(rows, key=lambda row: (-len(row.nodes), row.op))


def _of_functions(entry: Resolved, graph: Graph, host: Host, seen: set[tuple[Any, ...]]) -> list[tuple[Node, Entry]]:
    """The nodes that the functions of a call need, but for functions that were seen."""
    types, listed = call_site(entry).types, labelled_functions(entry)
    found: list[tuple[Node, Entry]] = []
    for label, func in listed:
        key = func.name, repr(sorted(func.attrs.items())), types
        if key in seen:
            continue
        seen.add(key)
        site = entry.node.name if len(listed) == 1 else f"{entry.node.name}/{label}"
        body = function_body(site, func, types, graph, host.registries.ops)
        nodes = resolve(body.graph, host.registries.ops)
        acting = [] if body.effects is None else [body.effects]
        found += [(node, nodes[node.name])
                  for node in needed(body.graph, [*(name for name, _ in body.results), *acting])]
    return found[::-1]


def _may_give(entry: Entry) -> bool:
    return isinstance(entry, HealdError) or (bool(entry.output_tensors) and not entry.op.for_effect)


def _with_hint(reason: str, entry: Entry) -> str:
    hint = entry.hint if isinstance(entry, HealdError) else None
    return f"{reason}; {hint}" if hint else reason


def _lacks(entry: Entry, host: Host) -> str | None:
    """Why no device type has a kernel for a node, or None."""
    if isinstance(entry, HealdError):
        return entry.message
    if entry.op.name in NO_KERNEL:
        return None
    refused = []
    for device_type in host.preference():
        for kernel in host.registries.kernels.candidates(entry.op.name, device_type):
            why = kernel.refuses(entry.attrs)
            if why is None:
                return None
            refused.append(f"{device_type} {kernel.pack}: {why}")
    return "; ".join(dict.fromkeys(refused)) or "no kernel"
