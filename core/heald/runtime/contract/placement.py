"""Placement: the device of every node of a graph, with the reason and the refused candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from ...errors import HealdError
from ..support.records import dataclass
from ..support.remedy import NO_FUSION
from .kernel import KernelChoice, KernelDef, KernelRegistry


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
    """Assignments by node, in the graph's order. `kernels`: the registry that the kernels were chosen from."""

    def __init__(self, rows: dict[str, Assignment], kernels: KernelRegistry | None = None) -> None:
        self._rows = rows
        self.kernels = kernels
        self._choices: dict[int, KernelChoice] = {}  # by id of the kernel: many nodes share one

    def __getitem__(self, node: str) -> Assignment:
        return self._rows[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> list[dict[str, str]]:
        """Return a row per node: node, op, requested, assigned, kernel, fused, reason, choice, lost, refused.

        `reason` is of the device, `choice` of the kernel among those for this device, `lost` of the kernels behind it.
        """
        return [{
            "node": row.node, "op": row.op, "requested": row.requested,
            "assigned": "-" if row.device is None else row.device or "host",
            "kernel": _kernel(row), "fused": "" if row.fused is None else f"with {row.fused[1]}",
            "reason": row.reason if row.error is None else str(row.error.message),
            **self._choice_columns(row), "refused": refusals(row),
        } for row in self._rows.values()]

    def _repr_html_(self) -> str:
        from ..support.notebook_table import notebook_table

        columns = ("node", "op", "requested", "assigned", "kernel", "fused", "reason", "refused")
        return notebook_table(f"Placement of {len(self)} nodes", self.table(), columns, "assigned")

    def reasons(self) -> dict[str, str]:
        """Return by node the reasons for its device and its kernel, with the kernels behind it, as one text."""
        parts = ("reason", "choice", "lost", "refused")
        return {row["node"]: "; ".join(row[part] for part in parts if row[part]) for row in self.table()}

    def choice(self, row: Assignment) -> KernelChoice:
        """Return the rule by which a node's kernel was chosen, and the packs that lost; no rule without a choice."""
        kernel = row.kernel
        if kernel is None or self.kernels is None or row.fused is not None or kernel.is_fusion:
            compiler = "" if kernel is None else kernel.compiler
            way_out = f"[passes] disable = ['{compiler}']" if compiler else NO_FUSION
            return KernelChoice("" if row.fused is None else f"fused; {way_out} undoes it", ())
        if id(kernel) not in self._choices:
            self._choices[id(kernel)] = self.kernels.choice(kernel)
        return self._choices[id(kernel)]

    def _choice_columns(self, row: Assignment) -> dict[str, str]:
        choice = self.choice(row)
        return {"choice": choice.rule, "lost": "; ".join(f"{pack}: {why}" for pack, why in choice.lost)}


def _kernel(row: Assignment) -> str:
    if row.fused is not None:
        return row.fused[0]
    return "" if row.kernel is None else f"{row.kernel.pack}.{row.op}"


def refusals(row: Assignment) -> str:
    """Return the refused candidates of a node with their reasons, as text."""
    return "; ".join(f"{candidate}: {why}" for candidate, why in row.refused)
