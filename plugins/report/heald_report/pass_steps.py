"""The steps of the graph passes: the time of each pass, and the nodes that it added, removed and rewrote.

A pass changes a graph in sites. A site is a part of the changed nodes that tensors connect, in the graph before and
the graph after taken together. Edges of control do not count: they would join unrelated sites. Sites with the same
changes of the same ops are one pattern, so a pass that folds fifty batch norms shows one picture and the number 50. A
picture has the changed nodes and their neighbours, so it is small even for a large graph, and both sides of the change
share its coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from time import perf_counter_ns
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .field_changes import field_changes
from .layout import layered_layout
from .node_table import NodeTable, shown_text
from .pictures import CHARACTER, HEIGHT, PADDING, short_label
from .removals import Removal, removal_reasons, word_counts
from .scope_edges import in_flow_order

if TYPE_CHECKING:
    from heald import Graph

ADDED, REMOVED, REWRITTEN, SAME = "added", "removed", "rewritten", "same"
MOST_PATTERNS = 16  # of a pass; the commonest ones
MOST_CHANGED_BOXES, MOST_NEIGHBOURS = 60, 20  # of a picture
MOST_NAMES = 40  # of the nodes of a pattern
MOST_CHANGE_ROWS = 400  # of the table of a pass


class PassStep(NamedTuple):
    """A pass that ran: its name, its nanoseconds with the check of its result, the graph before and after it."""

    name: str
    duration_ns: int
    before: Graph
    after: Graph


class Union(NamedTuple):
    """Two graphs together. `sources`, `consumers`: the names of a node's neighbours by tensors, in either graph."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    changes: dict[str, str]
    sources: dict[str, list[str]]
    consumers: dict[str, list[str]]


def timed_steps(graphs: Iterable[tuple[str, Graph]]) -> Iterator[PassStep]:
    """Yield a step for each pass. `graphs` has the first graph under "", and the graph after each pass."""
    before: Graph | None = None
    started = perf_counter_ns()
    for name, graph in graphs:
        if before is not None:
            yield PassStep(name, perf_counter_ns() - started, before, graph)
        before, started = graph, perf_counter_ns()


def step_rows(steps: Iterable[PassStep], plugins: Mapping[str, str], table: NodeTable) -> list[dict[str, Any]]:
    """Return the steps as JSON's values. `plugins` has the plugin of each pass."""
    return [_step_row(step, plugins.get(step.name, ""), table) for step in steps]


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Return the change of each node that is not the same on both sides."""
    changes = {name: REMOVED if name not in after else REWRITTEN for name, node in before.items()
               if name not in after or not _is_same(node, after[name])}
    return changes | {name: ADDED for name in after if name not in before}


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if any(getattr(one, field) != getattr(other, field) for field in ("op", "device", "inputs", "controls")):
        return False
    attrs = one.attrs
    return attrs is other.attrs or (attrs.keys() == other.attrs.keys() and all(
        value is other.attrs[key] or (key != "value" and value == other.attrs[key]) for key, value in attrs.items()))


def _step_row(step: PassStep, plugin: str, table: NodeTable) -> dict[str, Any]:
    before, after = step.before.nodes, step.after.nodes
    changes = {} if step.before is step.after else changes_of(before, after)
    reasons = removal_reasons(before, after) if changes else {}
    rows = _change_rows(before, after, changes, reasons, table)
    shown = [*islice(rows, MOST_CHANGE_ROWS)]
    return {"name": shown_text(step.name), "plugin": shown_text(plugin), "us": step.duration_ns / 1e3,
            **change_row(step.before, step.after, changes, table, reasons),
            "changes": shown, "more_changes": sum(1 for _ in rows), "why": word_counts(reasons.values())}


def _change_rows(before: Mapping[str, Any], after: Mapping[str, Any], changes: Mapping[str, str],
                 reasons: Mapping[str, Removal], table: NodeTable) -> Iterator[list[Any]]:
    """Yield name, number of the node, change, field, text before, text after, and the reason of a removal."""
    for name, change in changes.items():
        start = [shown_text(name), table.numbers.get(("", name), -1), change]
        if change == REWRITTEN:
            yield from ([*start, *field, ""] for field in field_changes(before[name], after[name]))
        elif change == REMOVED:
            yield [*start, "op", shown_text(before[name].op), "", shown_text(str(reasons[name]))]
        else:
            yield [*start, "op", "", shown_text(after[name].op), ""]


def change_row(before: Graph, after: Graph, changes: dict[str, str], table: NodeTable,
               reasons: Mapping[str, Removal] = MappingProxyType({})) -> dict[str, Any]:
    """Return the changes from one graph to another as JSON's values.

    `table` has the nodes of the page, `reasons` those of removed nodes."""
    union = _union(before, after, changes)
    patterns = _patterns(union)
    shown = sorted(patterns, key=lambda sites: -len(sites) * len(sites[0]))[:MOST_PATTERNS]
    counts = dict.fromkeys((ADDED, REMOVED, REWRITTEN), 0)
    for change in union.changes.values():
        counts[change] += 1
    return {"before": len(before), "after": len(after), **counts,
            "functions": sum(after.functions.get(name) is not function for name, function in before.functions.items()),
            "touched": [[table.numbers["", name], change[:3]] for name, change in union.changes.items()
                        if ("", name) in table.numbers],
            "patterns": [_pattern_row(union, sites, table, reasons) for sites in shown],
            "more": len(patterns) - len(shown)}


def _union(before: Graph, after: Graph, changes: dict[str, str]) -> Union:
    sources: dict[str, list[str]] = {}
    consumers: dict[str, list[str]] = {}
    for name in ({**before.nodes, **after.nodes} if changes else ()):
        both = [source for side in (before, after) if name in side for source in _tensor_sources(side[name])]
        sources[name] = [*dict.fromkeys(both)]
        for source in sources[name]:
            consumers.setdefault(source, []).append(name)
    return Union(before.nodes, after.nodes, changes, sources, consumers)


def _tensor_sources(node: Any) -> list[str]:
    return [tensor.node for tensor in node.inputs]


def _patterns(union: Union) -> list[list[list[str]]]:
    """Return the sites of each pattern; a site is a list of changed nodes."""
    patterns: dict[tuple[Any, ...], list[list[str]]] = {}
    visited: set[str] = set()
    for name in union.changes:
        if name not in visited:
            site = _site_of(union, name, visited)
            key = tuple(sorted((union.changes[node], *_ops(union, node)) for node in site))
            patterns.setdefault(key, []).append(site)
    return [*patterns.values()]


def _site_of(union: Union, name: str, visited: set[str]) -> list[str]:
    """Return the changed nodes that changed nodes join with this one."""
    site, stack = [], [name]
    visited.add(name)
    while stack:
        node = stack.pop()
        site.append(node)
        neighbours = [other for other in (*union.sources[node], *union.consumers.get(node, ()))
                if other in union.changes and other not in visited]
        neighbours = [*dict.fromkeys(neighbours)]
        visited.update(neighbours)
        stack += neighbours
    return site


def _ops(union: Union, name: str) -> tuple[str, str]:
    """Return the ops of a node before and after; "" where it is absent."""
    before, after = union.before.get(name), union.after.get(name)
    return "" if before is None else before.op, "" if after is None else after.op


def _pattern_row(union: Union, sites: Sequence[Sequence[str]], table: NodeTable, reasons: Mapping[str, Removal],
                 ) -> dict[str, Any]:
    names = [(name, union.changes[name]) for site in sites for name in site]
    return {"count": len(sites), "picture": _picture_row(union, sites[0], table),
            "names": [[shown_text(name), change, table.numbers.get(("", name), -1),
                       shown_text(str(reasons.get(name, "")))]
                      for name, change in names[:MOST_NAMES]],
            "more": max(0, len(names) - MOST_NAMES)}


def _picture_row(union: Union, site: Sequence[str], table: NodeTable) -> dict[str, Any]:
    """Return the picture of a site. `hidden`: its changed nodes without a box."""
    drawn = [name for name in site if not _is_dropped_constant(union, name)] or [*site]
    changed = drawn[:MOST_CHANGED_BOXES]
    neighbours = _unchanged_neighbours(union, changed)
    names = in_flow_order([*changed, *neighbours[:MOST_NEIGHBOURS]], union.sources)
    index_of = {name: index for index, name in enumerate(names)}
    edges = {(index_of[source], index_of[name]): _sides_of_edge(union, source, name)
             for name in names for source in union.sources[name] if source in index_of and source != name}
    boxes = [_box_texts(union, name) for name in names]
    sizes = [(max(len(label), len(second), 6) * CHARACTER + PADDING, HEIGHT) for label, second in boxes]
    layout = layered_layout(sizes, [*dict.fromkeys((min(edge), max(edge)) for edge in edges)])
    box_rows = [[label, second, union.changes.get(name, SAME), table.numbers.get(("", name), -1), round(x), round(y),
                 round(size[0]), round(size[1]), shown_text(name)]
                for name, (label, second), size, (x, y) in zip(names, boxes, sizes, layout.corners, strict=True)]
    edge_rows = [[start, end, side, [round(part) for point in (
        layout.bends.get((start, end), []) if start < end else layout.bends.get((end, start), [])[::-1])
        for part in point]] for (start, end), side in edges.items()]
    return {"width": round(layout.width), "height": round(layout.height), "boxes": box_rows, "edges": edge_rows,
            "hidden": len(drawn) - len(changed), "constants": len(site) - len(drawn)}


def _unchanged_neighbours(union: Union, names: Iterable[str]) -> list[str]:
    """Return the neighbours that are the same on both sides, without constants."""
    joined = [[*union.sources[name], *union.consumers.get(name, ())] for name in names]
    return [name for name in dict.fromkeys(chain.from_iterable(joined))
            if name in union.sources and name not in union.changes and union.after[name].op != "Const"]


def _is_dropped_constant(union: Union, name: str) -> bool:
    """True for a constant that is removed with its consumers: it tells nothing that they do not tell."""
    return union.changes[name] == REMOVED and union.before[name].op == "Const"


def _box_texts(union: Union, name: str) -> tuple[str, str]:
    before, after = _ops(union, name)
    second = before or after if before == after or not (before and after) else f"{before} → {after}"
    return short_label(shown_text(name.rpartition("/")[2] or name)), short_label(shown_text(second))


def _sides_of_edge(union: Union, source: str, name: str) -> str:
    is_before, is_after = (name in side and source in side and source in _tensor_sources(side[name])
                           for side in (union.before, union.after))
    return SAME if is_before and is_after else REMOVED if is_before else ADDED
