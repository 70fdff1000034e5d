"""The comparison of two models, or of one on two devices, as the page shows it beside the first model's report.

The second graph takes the names of the first for matched nodes. Its differences then have the pictures of a pass, which
would make the second graph of the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .node_matching import match_nodes, renamed_graph
from .node_table import NodeTable, shown_text
from .pass_steps import ADDED, REMOVED, REWRITTEN, change_row
from .value_differences import TensorDifference, value_differences

if TYPE_CHECKING:
    from heald import Graph, Model

MOST_ROWS = 2_000  # of each table


class ModelRun(NamedTuple):
    """A model with its title, and the trace and feeds of a run. `note`: the reason why there is no run."""

    model: Model
    title: str
    trace: Any = None
    feeds: Mapping[str, Any] | None = None
    note: str = ""

    @property
    def fed_tensors(self) -> list[str]:
        return [*(self.feeds or {})]


def comparison_rows(first: ModelRun, second: ModelRun, table: NodeTable) -> dict[str, Any]:
    """Return the comparison as JSON's values."""
    from heald.api.cli import change_rows
    from heald.graphs.graph import compare

    names = match_nodes(first.model.graph, second.model.graph, _seeds(first.model, second.model))
    before, after = first.model.graph, renamed_graph(second.model.graph, names)
    difference = compare(before, after)
    changes = {**dict.fromkeys(difference.removed, REMOVED), **dict.fromkeys(difference.added, ADDED),
               **dict.fromkeys(difference.changed, REWRITTEN)}
    fields = change_rows(difference, before, after)
    note, tensors = _values(first, second, {ours: theirs for theirs, ours in names.items()})
    beyond = [tensor for tensor in tensors if tensor.is_beyond]
    pairs = _pair_rows(first, second, names, table)
    return {"titles": [shown_text(first.title), shown_text(second.title)],
            "renamed": sum(theirs != ours for theirs, ours in names.items()),
            "equal": len(names) - len(difference.changed), "graph": change_row(before, after, changes, table),
            "fields": [[shown_text(row[key]) for key in ("change", "kind", "name", "field", "before", "after")]
                       for row in fields[:MOST_ROWS]], "more_fields": max(0, len(fields) - MOST_ROWS),
            "note": shown_text(note), "compared": len(tensors), "beyond": len(beyond),
            "tensors": [_tensor_row(tensor, first.model.graph, table) for tensor in beyond[:MOST_ROWS]],
            "closest": max((tensor.relative for tensor in tensors if not tensor.is_beyond), default=0.0),
            "clocks": sorted({*_clocks(first.trace), *_clocks(second.trace)}),
            "pairs": pairs[:MOST_ROWS], "more_pairs": max(0, len(pairs) - MOST_ROWS)}


def _seeds(first: Model, second: Model) -> dict[str, str]:
    """Return partners that the signatures state: inputs and outputs of one name, or else of one place."""
    seeds: dict[str, str] = {}
    for ours, theirs in ((first.fed, second.fed), (first.fetched, second.fetched)):
        shared = {name for name in theirs if name in ours}
        pairs = [(theirs[name], ours[name]) for name in shared] if shared else [*zip(theirs.values(), ours.values(),
                                                                                    strict=False)]
        seeds.update((other.partition(":")[0], own.partition(":")[0]) for other, own in pairs)
    return seeds


def _values(first: ModelRun, second: ModelRun, names: Mapping[str, str]) -> tuple[str, list[TensorDifference]]:
    """Return the compared tensors, or the reason why there are none."""
    from heald.errors import HealdError

    if first.feeds is None or second.feeds is None:
        return f"values are not compared: {first.note or second.note or 'no run was asked for'}", []
    try:
        return "", [*value_differences((first.model, second.model), (first.feeds, second.feeds), names)]
    except HealdError as error:
        return f"values are not compared: {error.message}", []


def _tensor_row(tensor: TensorDifference, graph: Graph, table: NodeTable) -> list[Any]:
    """Return node, tensor, other tensor, op, largest difference, its index, both values."""
    largest = None if tensor.largest is None else f"{tensor.largest:.3g}"
    return [table.numbers["", tensor.node], shown_text(tensor.tensor), shown_text(tensor.other),
            shown_text(graph[tensor.node].op), largest, str(list(tensor.where)), *map(shown_text, tensor.values),
            f"{tensor.relative:.3g}"]


def _pair_rows(first: ModelRun, second: ModelRun, names: Mapping[str, str], table: NodeTable) -> list[list[Any]]:
    """Return the matched nodes with another name, device or kernel pack, or with times; the largest change first.

    Times of two clocks have no difference: the longer one counts."""
    places, times = [run.model.placement() for run in (first, second)], [_times(run.trace) for run in (first, second)]
    clocks = [_clocks(run.trace) for run in (first, second)]
    rows: list[list[Any]] = []
    for theirs, ours in names.items():
        one, other = (_device_and_pack(side.get(name)) for side, name in zip(places, (ours, theirs), strict=True))
        us = [round(side.get(name, 0) / 1e3, 2) for side, name in zip(times, (ours, theirs), strict=True)]
        if theirs != ours or one != other or any(us):
            rows.append([table.numbers["", ours], "" if theirs == ours else shown_text(theirs), *one, *other, *us])
    return sorted(rows, key=lambda row: -(abs(row[7] - row[6]) if clocks[0].get(row[2]) == clocks[1].get(row[4])
                                          else max(row[6:8])))


def _clocks(trace: Any) -> dict[str, str]:
    """Return the clock of each device that does not use the host's."""
    from heald.runtime.executor import HOST_CLOCK

    return {event.device: event.clock for event, _ in (() if trace is None else trace.calls())
            if event.clock != HOST_CLOCK}


def _device_and_pack(row: Any) -> tuple[str, str]:
    if row is None or row.error is not None:
        return "", ""
    return shown_text(row.device or ""), "" if row.kernel is None else shown_text(row.kernel.pack)


def _times(trace: Any) -> dict[str, int]:
    """Return the nanoseconds of the calls of each node; a call with several nodes counts for the one of its name.

    A copy has the name of the node that it serves, and may have another clock: it does not count."""
    from heald.runtime.program import COPY

    times: dict[str, int] = defaultdict(int)
    for event, _ in () if trace is None else trace.calls():
        if event.call.code != COPY:
            times[event.call.node] += event.duration_ns
    return times


def run_titles(titles: Sequence[str], devices: Sequence[str | None]) -> list[str]:
    """Return titles that tell two runs apart: with the devices, or their order, where the titles are the same."""
    if titles[0] != titles[1]:
        return [*titles]
    words = [device or "default device" for device in devices] if devices[0] != devices[1] else ["first", "second"]
    return [f"{title} ({word})" for title, word in zip(titles, words, strict=True)]
