"""The copies between memories of a run: the tensor, both memories, bytes and time of each, and totals by pair.

A copy has the name of the node that it serves. Its tensor is the value of the register that it reads: the result of an
earlier call, a feed, or the source of an earlier copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heald.runtime.program import COPY

from .memory_use import HOST_MEMORY, result_bytes
from .node_table import NodeTable, TextPool, shown_text

if TYPE_CHECKING:
    from heald.runtime.executor import Event

    from .run_clocks import RunClocks

MOST_COPIES = 5_000  # on a page; the largest ones
ENTRY = "main"  # the function whose first registers are the feeds
UNNAMED = "a constant"  # a value that no call of the run made, and no feed


def copy_table(calls: Sequence[tuple[Event, Any]], memories: Sequence[str], feeds: Sequence[str], clocks: RunClocks,
               places: Mapping[int, int], table: NodeTable, pool: TextPool) -> dict[str, Any]:
    """Return the copies as JSON's values.

    `memories`: by place of a call in the trace, the memory of its results. `places`: likewise, its row. `feeds`: the
    fed tensors, in order."""
    if all(event.call.code != COPY for event, _ in calls):
        return {"rows": [], "pairs": [], "more": 0}
    tensors = {(ENTRY, number): name if ":" in name else f"{name}:0" for number, name in enumerate(feeds)}
    memory_of: dict[tuple[str, int], str] = {}
    rows: list[list[Any]] = []
    for index, ((event, _), memory) in enumerate(zip(calls, memories, strict=True)):
        function, call = event.function, event.call
        tensor = tensors.get((function, event.arguments[0]), UNNAMED) if call.code == COPY else ""
        if tensor:
            rows.append([shown_text(tensor), table.number_of_name(tensor.rpartition(":")[0]),
                         table.number_of_name(call.node),
                         pool.add(memory_of.get((function, event.arguments[0]), _source_of(event))), pool.add(memory),
                         result_bytes(event), round(event.duration_ns / 1e3, 2), clocks.number(event.clock),
                         places.get(index, -1)])
        for place, register in enumerate(call.results):
            tensors[function, register] = tensor or f"{call.node}:{place}"
            memory_of[function, register] = memory
    shown = sorted(rows, key=lambda row: -row[5])[:MOST_COPIES]
    return {"rows": shown, "pairs": _pairs(rows), "more": len(rows) - len(shown)}


def _source_of(event: Event) -> str:
    """Return the memory that a copy reads, where no call of the run made the value."""
    return event.device if event.call.attrs.get("to") == "host" else HOST_MEMORY


def _pairs(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return from, to, clock, copies, bytes and microseconds of each pair of memories, the most bytes first."""
    totals: dict[tuple[int, int, int], list[Any]] = {}
    for _, _, _, source, target, nbytes, us, clock, _ in rows:
        total = totals.setdefault((source, target, clock), [0, 0, 0.0])
        total[0] += 1
        total[1] += nbytes
        total[2] += us
    return sorted(([*pair, count, nbytes, round(us, 2)] for pair, (count, nbytes, us) in totals.items()),
                  key=lambda row: -row[4])
