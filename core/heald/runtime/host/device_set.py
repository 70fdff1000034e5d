"""DeviceSet: the devices of a process by type: their scan, opening, probe, order of preference and loss.

Nothing is scanned, opened or imported before a caller asks for the device type.
"""

# The theory of device records
#
# Each device of a scanned type has a record; a type without a device has one record that gives the reason.
#
#   status        next status, and the event that leads to it
#   (no record)   found: the scan returned a device; unavailable: it returned none, or a wrong one
#   found         ok: opened and probed; unavailable: `open` or the probe failed
#   ok            unavailable: the device is lost, or this process was forked
#   unavailable   none
#
# Invariants
# - A type is scanned once, a device is opened once: `_lock` is held during both. Warnings about a scan are issued after
#   the lock is released, since a user's filter may turn them into errors.
# - A device outside host memory that raises Unavailable in a run is lost. It stays lost for its Host, even if it works
#   later, because the content of its memory is gone. `check` refuses it before the next run.
# - A device on host memory is never lost. So the answer of `host_device` stays.
# - `choices` is lazy: a type is scanned when placement comes to it. A device type that the host device outranks is not
#   scanned without a request.
# - An exception of a device becomes a typed error in `device_fault` alone. In a run, `fault` notes it in the record.
#
# Rule: no transition leads out of `unavailable`. A device that is to be tried again needs a new Host.

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from ...errors import HealdError, HealdWarning, NotFound, PluginError, Unavailable, closest
from ..config.placement import ordered_device_types
from ..contract.device import Device, DeviceName
from ..contract.device_cost import DeviceCost
from ..contract.device_limits import NO_LIMITS, DeviceLimits
from ..contract.device_queues import DeviceQueues
from ..support.fork_safety import inherited
from .device_fault import device_fault
from .device_memory import DeviceMemory
from .device_record import DeviceRecord
from .forked_devices import USED_TYPES, fork_error
from .registries import Registries
from .scan import scan

if TYPE_CHECKING:
    from .stream_waiter import StreamWaiter


class DeviceSet:
    """The devices of the types that plugins registered. Each scanned device, or type without one, has a record.

    `order`: Placement's order of device types, or "auto".
    `device_memory`: The buffers on these devices.
    """

    def __init__(self, registries: Registries, order: str | Sequence[str]) -> None:
        self.registries = registries
        self.device_memory = DeviceMemory()
        self._order = order
        self._records: dict[str, list[DeviceRecord]] = {}
        self._lost: dict[int, DeviceRecord] = {}  # by id of the device
        self._waiters: dict[int, StreamWaiter] = {}  # by id of the device
        self._host_device: dict[None, str] = {}  # at most one: `setdefault` is atomic
        self._faults: list[str] = []  # of scans, to be told
        self._lock = threading.RLock()
        inherited.add(self)

    def preference(self) -> list[str]:
        """The device types, in placement's order of preference."""
        return ordered_device_types(self._order, [t.type for t in self.registries.device_types.by_priority()])

    def choices(self) -> Iterator[DeviceName]:
        """Yield the requests that placement tries, in turn, for a node without a requested device.

        First come the types that config orders, then all others by priority, without the types that serve on
        request.
        Records of these others that are no accelerator, or have no device, come last. A type is scanned when its turn
        comes.
        """
        last: list[DeviceName] = []
        for device_type in self.preference():
            name = DeviceName(type=device_type)
            if self._is_ordered(device_type):
                yield name
                continue
            if self._is_below_host(device_type):
                continue
            records = self.records(device_type)
            others = [r for r in records if r.device is None or not r.attributes.get("accelerator", True)]
            if others:
                last += [DeviceName.parse(r.name) for r in others]
                yield from (DeviceName.parse(r.name) for r in records if r not in others)
            else:
                yield name
        yield from last

    def on_request(self) -> list[str]:
        """The device types that serve requests only, and are not scanned without one.

        Their priority is below the priority of a scanned device on host memory, and config does not order them."""
        return [t for t in self.preference() if not self._is_ordered(t) and self._is_below_host(t)]

    def is_scanned(self, device_type: str) -> bool:
        return device_type in self._records

    def names(self, device_type: str) -> list[str]:
        """The short names of the usable devices of a type. Its devices are opened and probed at the first call."""
        return [r.name for r in self.records(device_type) if self._open(r)]

    def first(self, device_type: str, index: int | None = None) -> str | None:
        """The short name of the first usable device of a type, or of the device with this index; None when there is
        none. With an index no other device is opened."""
        return next((r.name for r in self.records(device_type)
                     if index in (None, DeviceName.parse(r.name).index) and self._open(r)), None)

    def why_not(self, device_type: str, index: int | None) -> str:
        """The reason why no device of this type, or of this type and index, is usable."""
        request = DeviceName(type=device_type, index=index).short
        for record in self.records(device_type):
            if record.status == "unavailable" and (index is None or record.name in (request, f"{device_type}:*")):
                return f"unavailable: {record.reason}" + (f"; {record.remedy}" if record.remedy else "")
        have = [r.name for t in self.preference() for r in self._records.get(t, ()) if r.status != "unavailable"]
        if self.registries.device_types.get(device_type) is None:
            device_types = ", ".join(self.preference()) or "none"
            return "; ".join((f"no plugin brings the device type {device_type}", f"device types: {device_types}",
                              *self.missing_plugins()))
        return f"no such device; devices: {', '.join(have) or 'none'}"

    def missing_plugins(self) -> list[str]:
        """Each plugin that is not in use, with the reason: it may be the one that provides a missing thing."""
        return [f"plugin {name} is {why}" for name, why in self.registries.missing_plugins.items()]

    def records(self, device_type: str | None = None) -> list[DeviceRecord]:
        """The records of a device type, or of every type. A type is scanned if it was not yet."""
        if device_type is None:
            return [r for t in self.preference() for r in self.records(t)]
        with self._lock:
            if device_type not in self._records:
                self._records[device_type] = self._scan(device_type)
            faults, self._faults = self._faults, []
            records = self._records[device_type]
        for fault in faults:
            warnings.warn(fault, HealdWarning, stacklevel=3)
        return records

    def devices_in_use(self) -> list[DeviceRecord]:
        """The records of the devices in use so far."""
        return [r for records in self._records.values() for r in records if r.status == "ok"]

    def name_of(self, device: Device) -> str:
        """The short name of a device of this host; its type for a device without a record."""
        return next((r.name for rs in self._records.values() for r in rs if r.device is device), device.type)

    def plugin_of(self, device: Device) -> str:
        """The id of the plugin of a device of this host."""
        return next((r.plugin for rs in self._records.values() for r in rs if r.device is device), "unknown")

    def fault(self, device: Device, error: BaseException) -> HealdError:
        """Return the typed error for an exception of one of this device's methods, and note it as `failed` does."""
        typed = device_fault(error, device, self.name_of(device), self.plugin_of(device), is_of_step=True)
        self.note_failure(device, typed)
        return typed

    def note_failure(self, device: Device, error: HealdError) -> None:
        """Note an error that a device raised while it ran.

        Unavailable, raised by a device outside host memory, means that the device is lost. A lost device stays lost for
        this host, even if it works again: the content of its memory is gone.
        """
        if isinstance(error, Unavailable) and not device.attributes.get("host_visible"):
            with self._lock:
                for record in [r for r in self.devices_in_use() if r.device is device]:
                    record.give_up(error)
                    self._lost[id(device)] = record

    def check(self, devices: Iterable[Device]) -> None:
        """Raises Unavailable when one of these devices was lost, FailedPrecondition when it belongs to the process that
        forked this one."""
        if self._lost:
            for record in [self._lost[id(device)] for device in devices if id(device) in self._lost]:
                if record.is_forked:
                    raise fork_error(record.name)
                raise Unavailable(f"device {record.name} is unavailable: {record.reason}", device=record.name,
                                  hint=record.remedy or None)

    def is_host_visible(self, name: str) -> bool:
        """True when the buffers of this device are host memory."""
        records = self.records(name.partition(":")[0])
        return any(r.name == name and r.attributes.get("host_visible") for r in records)

    def cost(self, name: str) -> DeviceCost | None:
        """The figures of cost of this device, or None for a device without."""
        return next((r.cost for r in self.records(name.partition(":")[0]) if r.name == name), None)

    def limits(self, name: str) -> DeviceLimits:
        """The limits of this device."""
        return next((r.limits for r in self.records(name.partition(":")[0]) if r.name == name), NO_LIMITS)

    def host_device(self) -> str | None:
        """The short name of a device that works on host memory: at the first call an open one, else the first in
        placement's order. None when there is none.

        The name stays for the life of this object, for devices on host memory are never lost.
        """
        for name in self._host_device.values():
            return name
        ordered = (record for device_type in self.preference() for record in self.records(device_type))
        for record in chain(self.devices_in_use(), ordered):
            if record.attributes.get("host_visible") and self._open(record):
                return self._host_device.setdefault(None, record.name)
        return None

    def open(self, name: str) -> Device:
        """The device of this short name, opened and probed. Raises NotFound when there is no such device, Unavailable
        when it cannot be used."""
        request = DeviceName.of_this_process(name)
        assert request.type is not None
        for record in self.records(request.type):
            if record.name == DeviceName(type=request.type, index=request.index or 0).short and self._open(record):
                assert record.device is not None
                return record.device
        raise self.absence_error(name, request)

    def absence_error(self, name: str, request: DeviceName) -> HealdError:
        """Return the error for a device that a caller asks for as `name`, and that is not usable."""
        assert request.type is not None
        if any(record.is_forked for record in self.records(request.type)):
            return fork_error(name)
        reason = self.why_not(request.type, request.index)
        if reason.startswith("unavailable"):
            return Unavailable(f"device {name} is {reason}", device=name)
        similar_names = closest(name, [r.name for records in self._records.values() for r in records])
        return NotFound(f"device {name}: {reason}", device=name,
                        hint=f"did you mean {similar_names[0]}?" if similar_names else None)

    def waiter(self, device: Device) -> StreamWaiter:
        """The StreamWaiter of a device whose memory the host cannot see. It is made at the first call."""
        from .stream_waiter import StreamWaiter  # imported late: listing devices needs no NumPy

        key = id(device)
        if key not in self._waiters:
            self._waiters.setdefault(key, StreamWaiter(device, self.name_of(device), self.plugin_of(device)))
        return self._waiters[key]

    def forked(self) -> None:
        self._lock = threading.RLock()  # a device that was being opened is still `found`: it is opened anew
        records = [r for records in self._records.values() for r in records
                   if r.device is not None and not r.attributes.get("host_visible")]
        for record in records:
            record.give_up(fork_error(record.name))
            record.is_forked, record.is_open = True, False
        self.device_memory.refuse(record.device for record in records if record.device is not None)
        self._lost |= {id(record.device): record for record in records}

    def _is_ordered(self, device_type: str) -> bool:
        return not isinstance(self._order, str) and device_type in self._order

    def _is_below_host(self, device_type: str) -> bool:
        """True for a priority below that of a scanned device on host memory that may be used."""
        by_type = self.registries.device_types
        return any(by_type.priority(record.type) > by_type.priority(device_type)
                   for records in list(self._records.values()) for record in records
                   if record.status != "unavailable" and record.attributes.get("host_visible"))

    def _scan(self, device_type: str) -> list[DeviceRecord]:
        if self.registries.device_types.get(device_type) is None:
            return []
        if device_type in USED_TYPES.of_parent:
            return [self._forked_type(device_type)]
        USED_TYPES.add(device_type)
        scanned = scan(self.registries.device_types, device_type)
        if all(record.device is None or record.attributes.get("host_visible") for record in scanned.records):
            USED_TYPES.remove(device_type)
        if self.registries.device_types.settle(device_type, scanned.plugin):
            self.registries.kernels.reload(device_type)
        self._faults += scanned.faults
        return scanned.records

    def _forked_type(self, device_type: str) -> DeviceRecord:
        plugin = self.registries.device_types.claims(device_type)[0].plugin
        record = DeviceRecord(f"{device_type}:*", device_type, plugin, "unavailable", is_forked=True)
        record.give_up(fork_error(record.name))
        return record

    def _open(self, record: DeviceRecord) -> bool:
        """Open and probe a device with status `found`. Returns True when the device is usable."""
        with self._lock:
            if record.status == "found":
                assert record.device is not None
                # Outside the try: failed kernels of named plugins, and warnings that are errors, are for the user.
                failed = self.registries.kernels.failure(record.type, record.plugin)
                try:
                    if failed is not None:
                        raise PluginError(f"the kernels of plugin {record.plugin} failed to load: {failed}")
                    self._open_and_probe(record, record.device)
                    record.attributes = dict(record.device.attributes)  # `open` may know more than the scan
                    record.status, record.is_open = "ok", True
                except Exception as error:  # a plugin's fault becomes a record
                    if isinstance(error, PluginError) and error.plugin not in (None, record.plugin):
                        raise  # failed kernels of a named plugin, which the probe met first
                    record.give_up(device_fault(error, record.device, record.name, record.plugin))
            return record.status == "ok"

    def _open_and_probe(self, record: DeviceRecord, device: Device) -> None:
        """Raises every exception of the device, and NoAnswer under a check."""
        from .probe import running_check

        open_device = partial(self._open_device, record, device)
        if running_check.get() is None:
            open_device()
        else:
            from .check_limit import run_limited  # imported late: a check alone needs it

            run_limited(record.name, record.plugin, open_device)

    def _open_device(self, record: DeviceRecord, device: Device) -> None:
        from .probe import probe_once

        device.open()
        try:
            record.limits = DeviceLimits.of_device(device)
            DeviceQueues.of(device)  # `open` may have changed them
            probe_once(device, self.registries, record.plugin)
        except BaseException:
            device.close()
            raise

