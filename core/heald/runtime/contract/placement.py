"""Placement: the device of every node of a graph, with the reason and the refused candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from ...errors import HealdError
from ..support.records import dataclass
from .kernel import KernelDef


@dataclass(slots=True)
class Assignment:
    """The placement of one node.

    `device`: a short name; "" when the runtime itself serves the node; None when no device can.
    `refused`: (candidate, reason) in the order in which candidates were tried.
    `fused`: the kernel that does the node together with others, and the last of these.
    """

    node: str
    op: str
    requested: str
    device: str | None = None
    kernel: KernelDef | None = None
    reason: str = ""
    refused: list[tuple[str, str]] = field(default_factory=list)
    fused: tuple[str, str] | None = None
    error: HealdError | None = None


class Placement(Mapping[str, Assignment]):
    """Assignments by node, in the graph's order."""

    def __init__(self, rows: dict[str, Assignment]) -> None:
        self._rows = rows

    def __getitem__(self, node: str) -> Assignment:
        return self._rows[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> list[dict[str, str]]:
        """Return a row per node: node, op, requested, assigned, kernel, fused, reason, refused."""
        return [{
            "node": row.node, "op": row.op, "requested": row.requested,
            "assigned": "-" if row.device is None else row.device or "host",
            "kernel": _kernel(row), "fused": "" if row.fused is None else f"with {row.fused[1]}",
            "reason": row.reason if row.error is None else str(row.error.message),
            "refused": refusals(row),
        } for row in self._rows.values()]


def _kernel(row: Assignment) -> str:
    if row.fused is not None:
        return row.fused[0]
    return "" if row.kernel is None else f"{row.kernel.pack}.{row.op}"


def refusals(row: Assignment) -> str:
    """Return the refused candidates of a node with their reasons, as text."""
    return "; ".join(f"{candidate}: {why}" for candidate, why in row.refused)
