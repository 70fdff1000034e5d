"""heald inspect --passes: the effect of each graph pass on the whole graph, or on the nodes that outputs need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..printing.terminal import say

if TYPE_CHECKING:
    from ...graphs.graph.graph import Graph
    from ...graphs.session.session import Session


def passes(graphs: Iterable[tuple[str, Graph]]) -> list[dict[str, Any]]:
    """A row a pass: its name, milliseconds, the graphs that it changed, nodes after it, and the ops that went and came.

    `graphs` has the first graph, and the graph after each pass under the pass's name. The bodies of functions count as
    graphs.
    """
    rows: list[dict[str, Any]] = []
    before: Graph | None = None
    started = perf_counter()
    for name, graph in graphs:
        if before is not None:
            rows.append({"pass": name, "ms": (perf_counter() - started) * 1e3,
                         "changed": _count_changed_graphs(before, graph),
                         "graphs": 1 + len({*before.functions, *graph.functions}), "nodes": len(graph),
                         **_difference(before, graph)})
        before, started = graph, perf_counter()
    return rows


def left_out(session: Session, feeds: Sequence[str], fetches: Sequence[str]) -> str:
    """The passes that the graph is run without, and why; empty where there are none, or it cannot be run at all."""
    from ...errors import HealdError

    try:
        return session.prepare(list(fetches), feeds).skipped_passes
    except HealdError:
        return ""


def tell(first: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]], why_not: str) -> None:
    """Tell of the passes before placement, `first`, where they changed the graph, and of the others."""
    changed = any(row["less"] or row["more"] for row in first)
    if changed:
        say("\npasses before placement, over the whole graph")
        show_passes(first)
    none = f"no {'further ' * changed}passes: no plugin brings one, or config disables them"
    say(f"\n{'passes, in order' if rows else none}")
    if rows:
        show_passes(rows)
    if why_not:
        say(f"the graph is run without some of that: {why_not}")


def show_passes(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows of `passes`."""
    from ..printing.table import plural, show

    show([row | {"ms": f"{row['ms']:.1f}", "changed": f"{row['changed']} of {plural(row['graphs'], 'graph')}",
                 "less": _counts(row["less"]), "more": _counts(row["more"])}
          for row in rows], ("pass", "ms", "changed", "nodes", "less", "more"), wrap=("less", "more"))


def _count_changed_graphs(before: Graph, after: Graph) -> int:
    """The number of graphs, the bodies of functions included, that differ."""
    from ...graphs.graph.comparison import compare

    if before is after:
        return 0
    difference = compare(before, after)
    of_functions = (difference.functions_added, difference.functions_removed, difference.functions_changed)
    of_main_graph = difference._replace(functions_added=(), functions_removed=(), functions_changed={})
    return int(bool(of_main_graph)) + sum(map(len, of_functions))


def _difference(before: Graph, after: Graph) -> dict[str, dict[str, int]]:
    ours, theirs = (Counter(node.op for node in graph) for graph in (before, after))
    return {"less": dict(ours - theirs), "more": dict(theirs - ours)}


def _counts(ops: dict[str, int]) -> str:
    return ", ".join(f"{count} {op}" for op, count in sorted(ops.items(), key=lambda item: (-item[1], item[0])))
