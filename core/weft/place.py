"""Placement: for every node of a graph its device, why, and what was refused.

The whole graph is placed once. Requests are met where they can be; the rest follows coverage (a device type must have
a kernel for the node's op, types and attributes) and the order of device types. A node that cannot be placed is
recorded, and is an error only for a step that needs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from .device import DeviceName
from .errors import InvalidArgument, Unimplemented, WeftError, WeftWarning
from .kernel import KernelDef, KernelRegistry, dtype_names
from .placement_config import PlacementConfig
from .resolve import Resolved

HOST_OPS = frozenset({"Const", "Placeholder", "NoOp"})  # the runtime's own: they need no kernel


class DeviceView(Protocol):
    """What the placer asks of the host: it may scan and open devices to answer."""

    def preference(self) -> list[str]:
        """Device types, those to be preferred first."""

    def choices(self) -> Iterator[DeviceName]:
        """Types or single devices to ask, in turn, for a node that asks for none."""

    def names(self, device_type: str) -> list[str]:
        """Short names of the usable devices of a type."""

    def why_not(self, device_type: str, index: int | None) -> str:
        """Why a device of this type, or the one of this index, cannot be used."""

    def missing_plugins(self) -> list[str]:
        """The plugins that are not in use, each with the reason."""


@dataclass(slots=True)
class Assignment:
    """One node's row: `device` is a short name, "" where the runtime itself serves the node, None where nothing can;
    `refused` has (candidate, reason) in the order they were asked."""

    node: str
    op: str
    requested: str
    device: str | None = None
    kernel: KernelDef | None = None
    reason: str = ""
    refused: list[tuple[str, str]] = field(default_factory=list)
    fused: tuple[str, str] | None = None  # the kernel that does it together with others, and the last of these
    error: WeftError | None = None


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
        """A row a node: node, op, requested, assigned, kernel, fused, reason, refused."""
        return [{
            "node": row.node, "op": row.op, "requested": row.requested,
            "assigned": "-" if row.device is None else row.device or "host",
            "kernel": _kernel(row), "fused": "" if row.fused is None else f"with {row.fused[1]}",
            "reason": row.reason if row.error is None else str(row.error.message),
            "refused": "; ".join(f"{candidate}: {why}" for candidate, why in row.refused),
        } for row in self._rows.values()]


def _kernel(row: Assignment) -> str:
    if row.fused is not None:
        return row.fused[0]
    return "" if row.kernel is None else f"{row.kernel.pack}.{row.op}"


class Placer:
    """Places nodes for one session; what a kernel's bind declines is remembered, and placed anew."""

    def __init__(self, devices: DeviceView, kernels: KernelRegistry, config: PlacementConfig,
                 prefer: str | None = None) -> None:
        self._devices = devices
        self._kernels = kernels
        self._config = config
        self._prefer = DeviceName.parse(prefer) if prefer else None
        self._remap = [(DeviceName.parse(old), DeviceName.parse(new)) for old, new in config.remap.items()]
        self._declined: dict[tuple[str, str], list[tuple[str, str]]] = {}  # (node, device type) -> (pack, reason)
        self._missing: dict[tuple[str, str], list[str]] = {}  # (what does not run, reason) -> nodes
        self._reported: set[tuple[str, str]] = set()

    def place(self, nodes: Mapping[str, Resolved | WeftError], ops: Mapping[str, tuple[str, str]]) -> Placement:
        """Assign every node; `ops` has (op, requested device) of nodes that did not resolve as well."""
        rows = {}
        for name, entry in nodes.items():
            op, requested = ops[name]
            row = rows[name] = Assignment(name, op, requested)
            if isinstance(entry, Resolved):
                self._assign(row, entry)
            else:
                row.error = entry
        self._report()
        return Placement(rows)

    def decline(self, node: str, device_type: str, pack: str, reason: str) -> None:
        """A kernel's bind declined this node: the next placement asks others."""
        self._declined.setdefault((node, device_type), []).append((pack, reason))

    def _assign(self, row: Assignment, entry: Resolved) -> None:
        if row.op in HOST_OPS:
            row.device, row.reason = "", "needs no kernel"
            return
        try:
            request = self._request(row.requested)
        except WeftError as error:
            row.error = error.at(node=row.node, op=row.op)
            return
        if request is None:
            self._first_that_can(row, entry, self._devices.choices(), "first in order with a kernel")
            return
        if self._try(row, entry, request, "requested"):
            return
        missed = row.refused[-1][1]
        choices = chain((DeviceName(type=request.type),), self._devices.choices())  # another of its type comes first
        reason = f"first in order with a kernel; the request could not be met: {missed}"
        if self._first_that_can(row, entry, choices, reason):
            self._not_met(row, request, missed)

    def _first_that_can(self, row: Assignment, entry: Resolved, choices: Iterable[DeviceName], reason: str) -> bool:
        if any(self._try(row, entry, choice, reason) for choice in choices):
            return True
        row.error = self._unplaceable(row, entry)
        return False

    def _request(self, text: str) -> DeviceName | None:
        """What a node asks for, after clear and remap; None when neither it nor the session asks for a type."""
        wanted = DeviceName() if self._config.clear else DeviceName.parse(text)
        for old, new in self._remap:
            if old.type == wanted.type and old.index in (None, wanted.index):
                return new
        return wanted if wanted.type is not None else self._prefer

    def _try(self, row: Assignment, entry: Resolved, wanted: DeviceName, reason: str) -> bool:
        """Assign the row to a device of the wanted type, or note why not."""
        assert wanted.type is not None
        names = self._usable(wanted)
        if not names:
            why = self._devices.why_not(wanted.type, wanted.index) if wanted.is_local else "it is not in this process"
            self._refuse(row, wanted.short if wanted.is_local else str(wanted), why)
            return False
        kernel = self._kernel(row, entry, wanted.type)
        if kernel is None:
            return False
        row.device, row.kernel, row.reason = names[0], kernel, reason
        return True

    def _usable(self, wanted: DeviceName) -> list[str]:
        """The devices that meet a request, usable ones only."""
        if wanted.type is None or not wanted.is_local:
            return []
        return [n for n in self._devices.names(wanted.type) if wanted.index is None or n == wanted.short]

    def _refuse(self, row: Assignment, candidate: str, why: str) -> None:
        if (candidate, why) not in row.refused:
            row.refused.append((candidate, why))

    def _kernel(self, row: Assignment, entry: Resolved, device_type: str) -> KernelDef | None:
        candidates = self._kernels.candidates(row.op, device_type)
        declined = dict(self._declined.get((row.node, device_type), ()))
        for kernel in candidates:
            why = kernel.refuses(entry.attrs) or declined.get(kernel.pack)
            if why is None:
                return kernel
            self._refuse(row, f"{device_type} {kernel.pack}.{row.op}", why)
        if not candidates:
            self._refuse(row, device_type, f"no kernel for {row.op}")
        return None

    def _unplaceable(self, row: Assignment, entry: Resolved) -> WeftError:
        types = sorted({tensor.dtype.name for tensor in (*entry.input_tensors, *entry.output_tensors)})
        have = [f"{k.device_type} {k.pack}.{row.op}" + "".join(f" {a}: {dtype_names(d)}" for a, d in k.dtypes.items())
                for t in self._devices.preference() for k in self._kernels.candidates(row.op, t)]
        asked = "; ".join(f"{candidate}: {why}" for candidate, why in row.refused)
        registered = [f"registered: {'; '.join(have)}"] if have else []
        hint = "; ".join([*registered, *self._devices.missing_plugins()]) or "'weft plugins' lists what is installed"
        return Unimplemented(f"no kernel for op {row.op} with types {', '.join(types) or 'none'}: {asked}",
                             node=row.node, op=row.op, hint=hint)

    def _not_met(self, row: Assignment, request: DeviceName, reason: str) -> None:
        wanted = request.short if request.is_local else str(request)
        if self._config.fallback == "error":
            row.error = InvalidArgument(f"the node asks for {wanted}, which cannot serve it: {reason}",
                                        node=row.node, op=row.op, device=wanted,
                                        hint='set [placement] fallback = "allow", or remap')
            row.device = row.kernel = None
        elif self._config.fallback == "warn":
            what = f"{row.op} does not run on {wanted}" if self._usable(request) else f"nothing runs on {wanted}"
            self._missing.setdefault((what, reason), []).append(row.node)

    def _report(self) -> None:
        for (what, reason), nodes in self._missing.items():
            if (what, reason) in self._reported:
                continue
            self._reported.add((what, reason))
            named = ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
            text = f"{what}: {reason}; nodes {named}"
            warnings.warn(text, WeftWarning, stacklevel=2)
        self._missing.clear()

