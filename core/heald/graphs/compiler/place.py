"""Placement: chooses a device for every node of a graph, with the reason and the refused candidates.

The whole graph is placed once. Requests are met if possible. Other nodes go to the first device type, in order, with a
kernel for their op, types and attributes. Colocated nodes are placed as one, and so are a resource and its users. Last,
nodes without a request move where they are cheaper (`cost_rule`). A node that cannot be placed is recorded, and is an
error only for a step that needs it.
"""

# The theory of the placer
#
# The unit is the group: nodes that `_class` or a resource connects, directly or through others. Most groups are
# single nodes. The rules, in order:
#
#   request            the intersection of the members' requests, after clear and remap, else the session's device
#   request not met    [placement] fallback: an error, or another device of the type, or the first device with kernels;
#                      so is a request for another process, with a type or without
#   no request         the first device type in order whose kernels serve every member
#   no device serves   the group is parted: each member alone, or an error with fallback "error"
#   host integers      a free node whose integers only the host consumes stays on the host (`host_integers`)
#   cost               a free node or island moves where it is cheaper (`cost_rule`)
#
# A node is free when neither it nor its group nor the session asks for a device.
#
# Invariants
# - After `place` a row has a device or an error. The device is "" for a node that needs no kernel.
# - `refused` has a reason for each candidate that came before the chosen device.
# - A lone node's device depends on its op, request and attributes alone, so alike nodes share one search. Declines
#   are by node: once there are any, each node is searched for itself.
# - Link, decline and place again comes to an end: a declined (node, device type, pack) is never chosen again.
# - The devices and kernels are asked through DeviceView and KernelRegistry only. `place` raises no node's error.

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol

from ...errors import HealdError, HealdWarning, InvalidArgument, Unimplemented
from ...runtime.config.placement import PlacementConfig
from ...runtime.contract.device import DeviceName
from ...runtime.contract.device_cost import DeviceCost
from ...runtime.contract.device_limits import DeviceLimits
from ...runtime.contract.kernel import KernelDef, KernelRegistry, dtype_names
from ...runtime.contract.op_registry import MISSING_HINT
from ...runtime.contract.placement import Assignment, Placement, refusals
from ...runtime.contract.structural import NO_KERNEL
from ...runtime.support.records import NamedTuple
from .colocation import colocation_groups, common_request, missing_partner, resource_edges
from .cost_rule import CostRule
from .host_integers import is_integer_node, nodes_kept_on_host
from .node_cost import NodeCosts
from .resolve import Resolved

LISTING_HINT = f"'heald plugins' lists what is installed; {MISSING_HINT}"
ON_REQUEST_HINT = "not asked, for they serve on request only: {types}; request one with device='{first}:0'"
FALLBACK_HINT = 'set [placement] fallback = "allow", or remap'


class DeviceView(Protocol):
    """The placer's view of the host, whose methods may scan and open devices."""

    def preference(self) -> list[str]:
        """Device types in order of preference."""

    def choices(self) -> Iterator[DeviceName]:
        """Device types or single devices to try, in turn, for a node without a request."""

    def on_request(self) -> list[str]:
        """The device types that serve requests only. They are not scanned, and their kernels are not imported, for a
        node without a request."""

    def first(self, device_type: str, index: int | None = None) -> str | None:
        """The short name of the first usable device of a type, or of the device with this index; None without one."""

    def why_not(self, device_type: str, index: int | None) -> str:
        """The reason why a device of this type, or the device with this index, cannot be used."""

    def absence_error(self, name: str, request: DeviceName) -> HealdError:
        """Return the error for a device that a caller asks for as `name`, and that is not usable."""

    def is_host_visible(self, name: str) -> bool:
        """True when this device works on host memory."""

    def cost(self, name: str) -> DeviceCost | None:
        """The figures of cost of this device, or None for a device without."""

    def limits(self, name: str) -> DeviceLimits:
        """The limits of this device."""

    def host_device(self) -> str | None:
        """The short name of a device that works on host memory, or None."""

    def missing_plugins(self) -> list[str]:
        """The plugins that are not in use, each with the reason."""


_PREFERRED, _REQUESTED, _REMAPPED = "the session's device", "requested", "requested, and remapped"
_REASONS_OF_MET_REQUESTS = frozenset({_REQUESTED, _REMAPPED})  # of nodes that are where they themselves ask to be
Likeness = tuple[str, str, int]  # op, requested device, attributes by identity


class Member(NamedTuple):
    """A node to be placed, with its row."""

    row: Assignment
    entry: Resolved


class PlacementGroup:
    """Nodes that go to one device; most groups have one node.

    `asker`: the row whose request counts, maybe of a node without a kernel; None without a request.
    `lacking`: device type to a member without a kernel there, and the reason.
    """

    __slots__ = ("asker", "lacking", "members")

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.asker: Assignment | None = None
        self.lacking: dict[str, tuple[Assignment, str]] = {}

    @property
    def first(self) -> Assignment:
        """The row that the other members are colocated with."""
        return self.members[0].row if self.asker is None else self.asker


class Placer:
    """Places the nodes of one session. Kernels that decline at bind are remembered, and not chosen again."""

    def __init__(self, devices: DeviceView, kernels: KernelRegistry, config: PlacementConfig,
                 prefer: str | None = None) -> None:
        """`prefer`: the session's device. Raises NotFound or Unavailable when it cannot be used."""
        self._devices = devices
        self._kernels = kernels
        self._config = config
        self._remap = [(DeviceName.parse(old), DeviceName.parse(new)) for old, new in config.remap.items()]
        self._prefer = None if prefer is None else self._session_device(prefer)
        self._declined: dict[tuple[str, str], list[tuple[str, str]]] = {}  # (node, device type) -> (pack, reason)
        self._missing: dict[tuple[str, str], list[str]] = {}  # (warning, reason) -> nodes
        self._reported: set[tuple[str, str]] = set()

    def place(
        self, nodes: Mapping[str, Resolved | HealdError], ops: Mapping[str, tuple[str, str]],
        costs: Callable[[Mapping[str, Resolved]], NodeCosts],
    ) -> Placement:
        """Assign every node. `ops` has (op, requested device) of each node, resolved or not.

        `costs` is called for a graph on several memories only: it infers shapes.
        """
        rows = {name: Assignment(name, *ops[name]) for name in nodes}
        resolved = {name: entry for name, entry in nodes.items() if isinstance(entry, Resolved)}
        for name, entry in nodes.items():
            rows[name].error = entry if isinstance(entry, HealdError) else _lost_partner(entry, nodes)
        free = []  # nodes without a request and without colocation
        placed: dict[Likeness, Assignment] = {}  # one placed node for all that are alike
        for names in colocation_groups((entry.node for entry in resolved.values()), resource_edges(resolved.values())):
            members = [Member(rows[name], resolved[name]) for name in names if rows[name].error is None]
            if len(names) > 1:
                self._assign_group(members)
            elif members and self._place_alone(members[0], placed):
                free += names
        on_host = self._keep_on_host(free, rows, resolved)
        if self._prefer is None:
            self._move_to_cheaper(free, on_host, rows, resolved, costs)
        self._warn_of_unmet_requests()
        return Placement(rows, self._kernels)

    def decline(self, node: str, device: str, pack: str, reason: str) -> None:
        """Remember that a pack's kernel declined this node on a device's type.

        The next placement tries other kernels.
        """
        self._declined.setdefault((node, device.partition(":")[0]), []).append((pack, reason))

    def device_of_request(self, text: str) -> str | None:
        """Return the usable device that a request asks for after clear and remap, else the session's, or None.

        A request that cannot be read asks for none.
        """
        try:
            request = self._request(text) or self._prefer
        except HealdError:
            return None
        return None if request is None else self._usable(request)

    def _place_alone(self, member: Member, placed: dict[Likeness, Assignment]) -> bool:
        """Place a node without colocation. Returns True when it is free to go anywhere.

        The placement of a node without a request, or with one that is met, holds for all nodes like it.
        """
        row, entry = member
        likeness = row.op, row.requested, 0 if row.op in NO_KERNEL else id(entry.attrs)
        other = placed.get(likeness)
        if other is not None:
            row.device, row.kernel, row.reason, row.refused = other.device, other.kernel, other.reason, [*other.refused]
            return row.kernel is not None and other.reason not in _REASONS_OF_MET_REQUESTS
        group = self._assign_group([member])
        met = row.reason in (_PREFERRED, *_REASONS_OF_MET_REQUESTS) and not row.refused
        asks_nothing = group.asker is None and self._prefer is None
        if (met or asks_nothing) and row.error is None and not self._declined:
            placed[likeness] = row
        return group.asker is None and bool(group.members)

    def _assign_group(self, colocated: Sequence[Member]) -> PlacementGroup:
        group = PlacementGroup([member for member in colocated if member.row.op not in NO_KERNEL])
        for row, _ in colocated:
            if row.op in NO_KERNEL:
                row.device, row.reason = "", "needs no kernel"
        request = self._request_of(group, colocated)
        if group.members and request is None:
            self._place_on_first(group, self._devices.choices(), "first in order with a kernel")
        elif group.members and request is not None:
            self._meet_request(group, request)
        return group

    def _meet_request(self, group: PlacementGroup, request: DeviceName) -> None:
        """Place the group where it asks to be or, if the fallback policy allows that, elsewhere."""
        if self._try_device(group, request, self._reason_of_met_request(group, request)):
            return
        missed = next((row for row, _ in group.members if row is group.asker), group.members[0].row).refused[-1][1]
        same = [DeviceName(type=request.type)] if self._usable(DeviceName(type=request.type)) else []
        choices = chain(same, self._devices.choices())  # another device of the same type comes first
        reason = f"first in order with a kernel; the request could not be met: {missed}"
        if self._place_on_first(group, choices, reason):
            self._record_unmet_request(group, request, missed)

    def _keep_on_host(
        self, free: Iterable[str], rows: Mapping[str, Assignment], entries: Mapping[str, Resolved]
    ) -> set[str]:
        """Assign nodes to the host whose integers only the host consumes, and return them. `free`: nodes without a
        requested device."""
        visible = {device: not device or self._devices.is_host_visible(device)
                   for device in {row.device for row in rows.values()} if device is not None}
        on_host = {name for name, row in rows.items() if row.device is not None and visible[row.device]}
        candidates = {name for name in free if name not in on_host and rows[name].kernel is not None
                      and is_integer_node(entries[name])}
        host = self._devices.host_device() if candidates else None
        if host is None:
            return set()
        reads = {name: [(source, name not in on_host and tensor.arg not in _host_inputs(rows[name]))
                        for (source, _), tensor in zip(entry.inputs, entry.input_tensors, strict=True)]
                 for name, entry in entries.items()}
        host_nodes = nodes_kept_on_host(candidates, on_host, reads)
        for name in host_nodes:
            alone = PlacementGroup([Member(rows[name], entries[name])])
            self._try_device(alone, DeviceName.parse(host), "only the host reads it")
        return host_nodes

    def _move_to_cheaper(
        self, free: Iterable[str], on_host: Collection[str], rows: Mapping[str, Assignment],
        entries: Mapping[str, Resolved], costs: Callable[[Mapping[str, Resolved]], NodeCosts],
    ) -> None:
        """Assign free nodes to other devices where they are cheaper. `on_host`: free nodes that stay on the host."""
        used = dict.fromkeys(row.device for row in rows.values() if row.device)
        figures = {device: cost for device in used if (cost := self._devices.cost(device)) is not None}
        visible = {device for device in used if self._devices.is_host_visible(device)}
        if len(figures) < 2 or visible.issuperset(figures):
            return

        def serves(name: str, device: str) -> KernelDef | None:
            return self._serving_kernel(name, entries[name], device)

        rule = CostRule(rows, entries, figures, visible, serves, lambda: costs(entries))
        rule.move_to_cheaper([name for name in free if name not in on_host and rows[name].kernel is not None], on_host)

    def _request_of(self, group: PlacementGroup, colocated: Sequence[Member]) -> DeviceName | None:
        """Return the common request of a group's nodes, or the session's, or None.

        A node whose request cannot be read or followed leaves the group with an error.
        """
        common = DeviceName()
        for row, _ in colocated:
            try:
                request = self._request(row.requested)
            except HealdError as error:
                if row.op not in NO_KERNEL:
                    row.error = error.at(node=row.node, op=row.op)
                continue
            if request is None:
                continue
            both = request if group.asker is None else common_request(common, request)
            if both is None:
                self._record_conflict(group, row, request, common)
            else:
                common, group.asker = both, group.asker or row
        group.members = [member for member in group.members if member.row.error is None]
        return self._prefer if group.asker is None else common

    def _request(self, text: str) -> DeviceName | None:
        """Return a node's request after clear and remap; None when every device of this process meets it."""
        device_name = DeviceName() if self._config.clear else DeviceName.parse(text)
        remapped = self._remapped_request(device_name)
        return remapped if remapped.type is not None or not remapped.is_local else None

    def _session_device(self, text: str) -> DeviceName | None:
        """Return the session's device after remap. Raises the error of a device that is not usable."""
        device_name = self._remapped_request(DeviceName.of_this_process(text))
        if device_name.type is None:
            return None
        if self._usable(device_name) is None:
            raise self._devices.absence_error(text, device_name)
        return device_name

    def _remapped_request(self, request: DeviceName) -> DeviceName:
        """Return the name that config puts in the place of this one, or this one."""
        return next((new for old, new in self._remap
                     if old.type == request.type and old.index in (None, request.index)), request)

    def _reason_of_met_request(self, group: PlacementGroup, request: DeviceName) -> str:
        """Return the reason text for a request that is met."""
        if group.asker is None:
            return _PREFERRED
        is_unmapped = not self._remap or common_request(DeviceName.parse(group.asker.requested), request) is not None
        return _REQUESTED if is_unmapped else _REMAPPED

    def _place_on_first(self, group: PlacementGroup, choices: Iterable[DeviceName], reason: str) -> bool:
        if any(self._try_device(group, choice, reason) for choice in choices):
            return True
        if len(group.members) == 1:
            row, entry = group.members[0]
            row.error = self._unplaceable(row, entry)
        else:
            self._place_apart(group)
        return False

    def _try_device(self, group: PlacementGroup, request: DeviceName, reason: str) -> bool:
        """Assign the group to a device of the wanted type and return True, or note the reason and return False."""
        if request.type in group.lacking:
            return False
        device = self._usable(request)
        if request.type is None or device is None:
            why = (self._devices.why_not(request.type, request.index) if request.is_local and request.type is not None
                   else "it is not in this process")
            for row, _ in group.members:
                if not any(noted_reason == why and other.partition(":")[0] == request.type
                           for other, noted_reason in row.refused):
                    _record_refusal(row, _device_text(request), why)
            return False
        candidate = request.type if request.index is None else request.short
        kernels = []
        for row, entry in group.members:
            kernel = self._kernel_or_refusals(row, entry, device, candidate)
            if kernel is None:
                group.lacking[request.type] = row, row.refused[-1][1]
                for other, _ in group.members:
                    if other is not row:
                        _record_refusal(other, candidate, f"colocated with '{row.node}': {row.refused[-1][1]}")
                return False
            kernels.append(kernel)
        for (row, _), kernel in zip(group.members, kernels, strict=True):
            row.device, row.kernel = device, kernel
            row.reason = reason if row is group.first else f"colocated with '{group.first.node}'"
        return True

    def _usable(self, request: DeviceName) -> str | None:
        """Return the first usable device that meets a request, or None."""
        if request.type is None or not request.is_local:
            return None
        return self._devices.first(request.type, request.index)

    def _kernel_or_refusals(
        self, row: Assignment, entry: Resolved, device: str, candidate: str
    ) -> KernelDef | None:
        """Return the kernel that serves a node on this device, or None after noting the reasons."""
        has_candidates = False
        for kernel, why in self._candidate_kernels(row.node, entry, device):
            if why is None:
                return kernel
            _record_refusal(row, f"{candidate} {kernel.pack}.{row.op}", why)
            has_candidates = True
        if not has_candidates:
            _record_refusal(row, candidate, f"no kernel for {row.op}")
        return None

    def _serving_kernel(self, node: str, entry: Resolved, device: str) -> KernelDef | None:
        """Return the kernel that would serve a node on this device, or None."""
        return next((kernel for kernel, why in self._candidate_kernels(node, entry, device) if why is None), None)

    def _candidate_kernels(
        self, node: str, entry: Resolved, device: str
    ) -> Iterator[tuple[KernelDef, str | None]]:
        """Yield the kernels for a node on this device, each with the reason why it is none of its candidates, or
        None."""
        device_type, limits = device.partition(":")[0], self._devices.limits(device)
        declined = dict(self._declined.get((node, device_type), ()))
        for kernel in self._kernels.candidates(entry.op.name, device_type):
            missing = _missing_type(entry, kernel, limits) if limits.missing_types else None
            yield kernel, kernel.refuses(entry.attrs) or missing or declined.get(kernel.pack)

    def _unplaceable(self, row: Assignment, entry: Resolved) -> HealdError:
        types = sorted({tensor.dtype.name for tensor in (*entry.input_tensors, *entry.output_tensors)})
        on_request = self._devices.on_request()
        have = [f"{k.device_type} {k.pack}.{row.op}" + "".join(f" {a}: {dtype_names(d)}" for a, d in k.dtypes.items())
                for t in self._devices.preference() if t not in on_request
                for k in self._kernels.candidates(row.op, t)]
        registered = [f"registered: {'; '.join(have)}"] if have else []
        unasked = [ON_REQUEST_HINT.format(types=", ".join(on_request), first=on_request[0])] if on_request else []
        hint = "; ".join([*registered, *unasked, *self._devices.missing_plugins(), LISTING_HINT])
        return Unimplemented(f"no kernel for op {row.op} with types {', '.join(types) or 'none'}: {refusals(row)}",
                             node=row.node, op=row.op, hint=hint)

    def _record_unmet_request(self, group: PlacementGroup, request: DeviceName, reason: str) -> None:
        requested_device = _device_text(request)
        if self._config.fallback == "error":
            for row, _ in group.members:
                asks = ("the session asks" if group.asker is None else "the node asks" if group.asker is row else
                        f"the node is colocated with '{group.asker.node}', which asks")
                row.error = InvalidArgument(f"{asks} for {requested_device}, which cannot serve it: {reason}",
                                            node=row.node, op=row.op, device=requested_device, hint=FALLBACK_HINT)
                row.device = row.kernel = None
        elif self._config.fallback == "warn":
            ops = ", ".join(dict.fromkeys(row.op for row, _ in group.members))
            do = "do" if ", " in ops else "does"
            what = f"{ops} {do} not run" if self._usable(request) else "nothing runs"
            what = f"{what} on {requested_device}"
            self._missing.setdefault((what, reason), []).extend(row.node for row, _ in group.members)

    def _record_conflict(self, group: PlacementGroup, row: Assignment, request: DeviceName, other: DeviceName) -> None:
        """The node of `row` requests the device `request`, a node that it is colocated with requests `other`.

        By `[placement] fallback` all members of the group fail, or the request of `row` is dropped, with a warning.
        """
        assert group.asker is not None
        asker, asked_device = group.asker, _device_text(other)
        if self._config.fallback == "error":
            for member, _ in group.members:
                member.error = InvalidArgument(
                    f"'{asker.node}' asks for {asked_device} and '{row.node}' for {_device_text(request)}, "
                    "but they are colocated",
                    node=member.node, op=member.op, device=_device_text(request), hint=FALLBACK_HINT)
            return
        _record_refusal(row, _device_text(request), f"colocated with '{asker.node}', which asks for {asked_device}")
        if self._config.fallback == "warn":
            what = f"nothing that is colocated with '{asker.node}' runs on {_device_text(request)}"
            self._missing.setdefault((what, f"it asks for {asked_device}"), []).append(row.node)

    def _place_apart(self, group: PlacementGroup) -> None:
        """Place the nodes of a group that no device serves as a whole: one by one.

        With fallback "error" each node becomes an error instead.
        """
        lacking = {row.node for row, _ in group.lacking.values()}
        by_fault = sorted((row.node for row, _ in group.members), key=lambda name: name not in lacking)
        one, other = by_fault[:2]
        why = f"no device serves both '{one}' and '{other}'"
        lacks = "; ".join(f"{device_type}: {missed}" for device_type, (_, missed) in group.lacking.items())
        for member in group.members:
            row = member.row
            if self._config.fallback == "error":
                row.error = InvalidArgument(f"{why}, which are colocated: {lacks}", node=row.node, op=row.op,
                                            hint=FALLBACK_HINT)
                continue
            row.refused = [(f"colocation with '{group.first.node if row is not group.first else other}'", why)]
            self._assign_group([member])
        devices = {row.device for row, _ in group.members if row.device is not None}
        if self._config.fallback == "warn" and len(devices) > 1:  # else a member has no kernel at all
            nodes = [row.node for row, _ in group.members]
            self._missing.setdefault(("colocated nodes are on several devices", f"{why}: {lacks}"), []).extend(nodes)

    def _warn_of_unmet_requests(self) -> None:
        for (what, reason), nodes in self._missing.items():
            if (what, reason) in self._reported:
                continue
            self._reported.add((what, reason))
            named = ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
            text = f"{what}: {reason}; nodes {named}"
            warnings.warn(text, HealdWarning, stacklevel=2)
        self._missing.clear()


def _lost_partner(entry: Resolved, nodes: Mapping[str, object]) -> HealdError | None:
    partner = missing_partner(entry.node, nodes)
    return None if partner is None else InvalidArgument(
        f"the node is to be colocated with '{partner}', which is not in the graph", node=entry.node.name,
        op=entry.op.name, hint=f"remove 'loc:@{partner}' from its attribute '_class'")


def _host_inputs(row: Assignment) -> frozenset[str]:
    """The inputs that a node's kernel reads in host memory."""
    return row.kernel.host if row.kernel is not None else frozenset()


def _missing_type(entry: Resolved, kernel: KernelDef, limits: DeviceLimits) -> str | None:
    """Return the reason why a tensor of the node cannot be on a device with these limits, or None."""
    outputs = () if kernel.host_outputs else entry.output_tensors
    there = (*(tensor for tensor in entry.input_tensors if tensor.arg not in kernel.host), *outputs)
    return limits.refusal_of_types(tensor.dtype for tensor in there)


def _device_text(request: DeviceName) -> str:
    return request.short if request.is_local else str(request)


def _record_refusal(row: Assignment, candidate: str, why: str) -> None:
    if (candidate, why) not in row.refused:
        row.refused.append((candidate, why))
