"""Coverage: the nodes of a graph that registered kernels can run, found without opening a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...errors import HealdError
from ...graphs.compiler.call_site import call_site, labelled_functions
from ...graphs.compiler.default_outputs import default_outputs
from ...graphs.compiler.function_body import function_body
from ...graphs.compiler.resolve import Resolved, resolve
from ...graphs.graph.graph import Graph, Node
from ...graphs.graph.traversal import ancestors
from ...runtime.contract.op_registry import MISSING_HINT
from ...runtime.contract.structural import CONTROL_FLOW, NO_KERNEL
from ...runtime.host.host import Host

Entry = Resolved | HealdError
Nodes = Mapping[str, Entry]


class Missing(NamedTuple):
    """Nodes of one op that nothing can run, for one reason."""

    op: str
    reason: str
    nodes: list[str]


def rewritten_graph(graph: Graph) -> tuple[Graph, Nodes]:
    """The graph as a session runs it, after the passes that come before placement, and its resolved nodes."""
    from ...graphs.session.pre_placement import run_pre_placement_passes
    from ...runtime.service.runtime import runtime

    *_, (_, graph) = run_pre_placement_passes(graph, (), runtime())
    return graph, resolve(graph, runtime().host.registries.ops)


def sinks(graph: Graph, nodes: Nodes) -> list[str]:
    """The default outputs, as Model finds them; nodes of unknown ops are among them."""
    return default_outputs(graph.nodes, nodes).names


def dependencies(graph: Graph, outputs: Iterable[str]) -> list[Node]:
    """The nodes that these tensors or nodes depend on, data and control, in the graph's order.

    Raises NotFound for a name that is not in the graph.
    """
    ancestor_names = ancestors(graph.nodes, [graph[name.partition(":")[0]].name for name in outputs])
    return [node for node in graph if node.name in ancestor_names]


def reachable_nodes(order: Iterable[Node], nodes: Nodes, graph: Graph, host: Host) -> Iterator[tuple[Node, Entry]]:
    """These nodes, and the nodes of the functions that they call: a function once for its types and attributes.

    A node whose functions cannot be called comes with the reason.
    """
    left = [(node, nodes[node.name]) for node in reversed([*order])]
    seen_calls: set[tuple[Any, ...]] = set()
    while left:
        node, entry = left.pop()
        if isinstance(entry, Resolved) and entry.op.name in CONTROL_FLOW:
            try:
                left += _nodes_of_functions(entry, graph, host, seen_calls)
            except HealdError as error:
                entry = error
        yield node, entry


def unrunnable_nodes(reached: Iterable[tuple[Node, Entry]], host: Host) -> list[Missing]:
    """The ops without a kernel among these nodes, with the reason; most nodes first."""
    nodes_by_reason: dict[tuple[str, str], tuple[Entry, list[str]]] = {}  # with the first of the nodes
    device_types = host.preference()
    for node, entry in reached:
        reason = _lacks(entry, host, device_types)
        if reason is not None:
            nodes_by_reason.setdefault((node.op, reason), (entry, []))[1].append(node.name)
    rows = [Missing(op, _with_hint(reason, first), names) for (op, reason), (first, names) in nodes_by_reason.items()]
    return sorted(rows, key=lambda row: (-len(row.nodes), row.op))


def _nodes_of_functions(entry: Resolved, graph: Graph, host: Host, seen_calls: set[tuple[Any, ...]],
                        ) -> list[tuple[Node, Entry]]:
    """The nodes that the functions of a call need, but for functions of seen calls."""
    types, listed = call_site(entry, graph.functions).types, labelled_functions(entry)
    body_nodes: list[tuple[Node, Entry]] = []
    for label, func in listed:
        key = func.name, repr(sorted(func.attrs.items())), types
        if key in seen_calls:
            continue
        seen_calls.add(key)
        site = entry.node.name if len(listed) == 1 else f"{entry.node.name}/{label}"
        body = function_body(site, func, types, graph, host.registries.ops)
        nodes = resolve(body.graph, host.registries.ops)
        acting = [] if body.effects is None else [body.effects]
        body_nodes += [(node, nodes[node.name])
                       for node in dependencies(body.graph, [*(name for name, _ in body.results), *acting])]
    return body_nodes[::-1]


def _with_hint(reason: str, entry: Entry) -> str:
    """The reason and the error's hint, without the part that names this very command."""
    hint = (entry.hint if isinstance(entry, HealdError) else None) or ""
    hints = [part for part in hint.split("; ") if part not in ("", MISSING_HINT)]
    return "; ".join([reason, *hints])


def _lacks(entry: Entry, host: Host, device_types: Iterable[str]) -> str | None:
    """Why none of the device types has a kernel for a node, or None."""
    if isinstance(entry, HealdError):
        return entry.message
    if entry.op.name in NO_KERNEL:
        return None
    refused = []
    for device_type in device_types:
        for kernel in host.registries.kernels.candidates(entry.op.name, device_type):
            why = kernel.refuses(entry.attrs)
            if why is None:
                return None
            refused.append(f"{device_type} {kernel.pack}: {why}")
    return "; ".join(dict.fromkeys(refused)) or "no kernel"
