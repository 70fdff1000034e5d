"""HostContext: what programs run in. It owns the devices of this process: scans, opens, probes and closes them. It
owns the work queue too.

Nothing is scanned, opened or imported before somebody asks for the device type, or for the queue.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .allocator import HostAllocator
from .allocators import make_allocator
from .device import Device, DeviceName, load_callable
from .errors import NotFound, PluginError, Unavailable, WeftError, closest
from .placement_config import preference
from .registries import Registries
from .work_queue import ConcurrentWorkQueue, WorkQueueConfig
from .work_queues import make_work_queue


@dataclass
class DeviceRecord:
    """One device, or one device type that has none. status: `found` (not opened yet), `ok` (opened, a kernel and a
    copy ran), `unavailable` (`reason` says why, `remedy` what to do)."""

    name: str
    type: str
    plugin: str
    status: str
    reason: str = ""
    remedy: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    device: Device | None = field(default=None, repr=False)

    def give_up(self, error: Exception) -> None:
        self.status = "unavailable"
        self.reason = error.message if isinstance(error, WeftError) else f"{type(error).__name__}: {error}"
        self.remedy = (error.hint or "") if isinstance(error, WeftError) else ""


class HostContext:
    """Devices and the host allocator over a set of registries. `order` is placement's order of device types.

    Devices and queue are closed when the context is closed, is no longer used, or the process ends.

    `allocator` and `limit` are those of [allocator].

    Raises NotFound for an allocator that nobody registered, InvalidArgument for a limit that cannot be read.
    """

    def __init__(
        self, registries: Registries, order: str | Sequence[str] = "auto", allocator: str = "plain",
        limit: int | str | None = None, work_queue: WorkQueueConfig | None = None,
    ) -> None:
        self.registries = registries
        self.allocator: HostAllocator = make_allocator(registries.allocators, allocator, limit)
        self._order = order
        self._records: dict[str, list[DeviceRecord]] = {}
        self._queue_config = work_queue or WorkQueueConfig()
        self._queues: list[ConcurrentWorkQueue] = []  # the one, once somebody has asked for it
        self.offers: deque[None] = deque()  # of jobs, to whatever thread of the queue comes; nobody has come yet
        self._lock = threading.RLock()
        weakref.finalize(self, _close, self._records, self._queues)

    @property
    def work_queue(self) -> ConcurrentWorkQueue:
        """The queue that config chose, made when first asked for. Raises as make_work_queue does."""
        for queue in self._queues:  # no lock once it is there: a device may be opening under it
            return queue
        with self._lock:
            if not self._queues:
                self._queues.append(make_work_queue(self.registries.work_queues, self._queue_config))
            return self._queues[0]

    def preference(self) -> list[str]:
        """Device types, those that placement prefers first."""
        return preference(self._order, [t.type for t in self.registries.device_types.by_priority()])

    def names(self, device_type: str) -> list[str]:
        """Short names of the usable devices of a type: opened and probed when first asked for."""
        return [r.name for r in self.records(device_type) if self._open(r)]

    def why_not(self, device_type: str, index: int | None) -> str:
        """Why there is no usable device of this type, or none of this index."""
        wanted = DeviceName(type=device_type, index=index).short
        for record in self.records(device_type):
            if record.status == "unavailable" and (index is None or record.name in (wanted, f"{device_type}:*")):
                return f"unavailable: {record.reason}" + (f"; {record.remedy}" if record.remedy else "")
        have = [r.name for t in self.preference() for r in self._records.get(t, ()) if r.status == "ok"]
        if self.registries.device_types.get(device_type) is None:
            known = ", ".join(self.preference()) or "none"
            return "; ".join((f"no plugin brings the device type {device_type}", f"device types: {known}",
                              *self.missing_plugins()))
        return f"no such device; devices: {', '.join(have) or 'none'}"

    def missing_plugins(self) -> list[str]:
        """The plugins that are not in use, each with the reason: what is missing may be theirs."""
        return [f"plugin {name} is {why}" for name, why in self.registries.missing_plugins.items()]

    def records(self, device_type: str | None = None) -> list[DeviceRecord]:
        """The devices of a type, or of every type, scanned now if they were not."""
        if device_type is None:
            return [r for t in self.preference() for r in self.records(t)]
        with self._lock:
            if device_type not in self._records:
                self._records[device_type] = self._scan(device_type)
            return self._records[device_type]

    def opened(self) -> list[DeviceRecord]:
        """The devices in use so far."""
        return [r for records in self._records.values() for r in records if r.status == "ok"]

    def open(self, name: str) -> Device:
        """The device of this short name, opened and probed. Raises NotFound, Unavailable."""
        wanted = DeviceName.parse(name)
        if wanted.type is None:
            raise NotFound(f"'{name}' names no device type", device=name)
        for record in self.records(wanted.type):
            if record.name == DeviceName(type=wanted.type, index=wanted.index or 0).short and self._open(record):
                assert record.device is not None
                return record.device
        reason = self.why_not(wanted.type, wanted.index)
        if reason.startswith("unavailable"):
            raise Unavailable(f"device {name} is {reason}", device=name)
        near = closest(name, [r.name for t in self.preference() for r in self.records(t)])
        raise NotFound(f"device {name}: {reason}", device=name, hint=f"did you mean {near[0]}?" if near else None)

    def close(self) -> None:
        """Close the queue and every device that was opened."""
        with self._lock:
            _close(self._records, self._queues)

    def _scan(self, device_type: str) -> list[DeviceRecord]:
        announced = self.registries.device_types.get(device_type)
        if announced is None:
            return []
        nobody = DeviceRecord(f"{device_type}:*", device_type, announced.plugin, "unavailable")
        try:
            scan = load_callable(announced.scan)
            found = list(scan(announced.config))
        except Exception as error:  # noqa: BLE001 - a plugin's fault becomes a record
            nobody.give_up(error)
            return [nobody]
        if not found:
            nobody.reason = f"plugin {announced.plugin} found none"
            return [nobody]
        return [DeviceRecord(f"{device_type}:{i}", device_type, announced.plugin, "found", device=device,
                             attributes=dict(device.attributes)) for i, device in enumerate(found)]

    def _open(self, record: DeviceRecord) -> bool:
        """Open and probe a device that was found; whether it is usable."""
        with self._lock:
            if record.status == "found":
                assert record.device is not None
                from .probe import probe

                try:
                    failed = self.registries.kernels.failure(record.type, record.plugin)
                    if failed is not None:
                        raise PluginError(f"the kernels of plugin {record.plugin} failed to load: {failed}")
                    record.device.open()
                    probe(record.device, self.registries)
                    record.status = "ok"
                except Exception as error:  # noqa: BLE001 - a plugin's fault becomes a record
                    record.give_up(error)
            return record.status == "ok"


def _close(records: dict[str, list[DeviceRecord]], queues: list[ConcurrentWorkQueue]) -> None:
    for queue in queues:
        queue.close()
    queues.clear()
    for record in [r for of_type in records.values() for r in of_type]:
        if record.status == "ok" and record.device is not None:
            record.device.close()
    records.clear()
