"""Scan: the devices of one type, from the first plugin that has some. Each result of a plugin's scan is checked.

A fault of a plugin becomes a record. A device that is wrong becomes an unavailable record, and the others serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import HealdError, PluginError, Unavailable
from ..contract.device import DeviceName, DeviceType, DeviceTypeRegistry, load_callable, own_method
from ..contract.device_cost import DeviceCost
from ..contract.device_limits import DeviceLimits
from ..contract.device_queues import DeviceQueues
from ..support.records import NamedTuple
from ..support.remedy import device_remedy
from .device_fault import scan_fault
from .device_record import DeviceRecord

DEVICE_METHODS = ("open", "close", "allocate", "free", "copy_in", "copy_out", "record", "synchronize")


class ScanOutcome(NamedTuple):
    """The records of a device type, the plugin that serves it, and a text for each fault that users should hear of."""

    records: list[DeviceRecord]
    plugin: str
    faults: list[str]


def scan(types: DeviceTypeRegistry, device_type: str) -> ScanOutcome:
    """Scan the claims of an announced type in turn, until one has a device."""
    claims, rivals = types.claims(device_type), types.rivals(device_type)
    tried: list[DeviceRecord] = []
    faults: list[str] = []
    for claim in claims:
        records = _devices(claim, faults)
        if any(record.status == "found" for record in records):
            return ScanOutcome(records, claim.plugin, faults)
        tried += records
    left = [claim.plugin for claim in rivals if claim not in claims]
    first, *others = tried
    first.reason = "; ".join([first.reason, *(other.reason for other in others)])
    if left:
        first.reason += f"; plugin {', '.join(left)} announces {device_type} too"
        first.remedy = first.remedy or f"set [placement.provider] {device_type} = '{left[0]}'"
    return ScanOutcome([first] if first.device is None and others else tried, first.plugin, faults)


def _devices(claim: DeviceType, faults: list[str]) -> list[DeviceRecord]:
    """Return the records of one plugin's scan: one for each result, or one for the type."""
    nobody = DeviceRecord(f"{claim.type}:*", claim.type, claim.plugin, "unavailable")
    try:
        result = load_callable(claim.scan)(claim.config)
        if not hasattr(result, "__iter__"):
            raise PluginError(f"scan of plugin {claim.plugin} returned {type(result).__name__}, expected devices",
                              hint=device_remedy(claim.plugin))
        devices = list(result)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's fault becomes a record
        fault = scan_fault(error, claim.type, claim.plugin, claim.scan)
        nobody.give_up(fault)
        if not isinstance(fault, Unavailable):
            faults.append(f"device type {claim.type}: {fault}")
        return [nobody]
    if not devices:
        nobody.reason = f"plugin {claim.plugin} found none"
        return [nobody]
    records = [_record(DeviceName(type=claim.type, index=i).short, claim, device) for i, device in enumerate(devices)]
    faults += [f"device {record.name} (plugin {claim.plugin}): {record.reason}; {record.remedy}" for record in records
               if record.status == "unavailable"]
    return records


def _record(name: str, claim: DeviceType, device: Any) -> DeviceRecord:
    """Return the record of a scanned device; it is unavailable when the device does not keep the contract."""
    record = DeviceRecord(name, claim.type, claim.plugin, "found")
    try:
        wrong = _wrong(device, claim.type)
        if wrong is not None:
            raise PluginError(f"scan of plugin {claim.plugin} gave {wrong}", hint=device_remedy(claim.plugin))
        record.device, record.attributes = device, dict(device.attributes)
        record.cost = DeviceCost.of(record.attributes["cost"]) if "cost" in record.attributes else None
        record.limits = DeviceLimits.of_device(device)
        DeviceQueues.of(device)
    except HealdError as error:
        record.give_up(error)
    except Exception as error:  # noqa: BLE001 - a property of the device raised
        record.give_up(scan_fault(error, claim.type, claim.plugin, claim.scan))
    return record


def _wrong(device: Any, device_type: str) -> str | None:
    """Return the fault of a result of a scan, or None."""
    kind = type(device).__name__
    missing = [name for name in ("type", "uid", "attributes") if not hasattr(device, name)]
    missing += [name for name in DEVICE_METHODS if own_method(device, name) is None]
    if missing:
        return f"an object of {kind}, which has no {', '.join(missing)}"
    if device.type != device_type:
        return f"a device of type {device.type!r}, it announces {device_type!r}"
    if not isinstance(device.uid, str) or not device.uid:
        return f"a {kind} with the uid {device.uid!r}, expected a non-empty str"
    if not isinstance(device.attributes, Mapping):
        return f"a {kind} whose attributes are {type(device.attributes).__name__}, expected a mapping"
    at_once = device.attributes.get("kernels_at_once", 1)
    if type(at_once) is not int or at_once < 1:
        return f"a {kind} with kernels_at_once {at_once!r}, expected a number from 1"
    uncallable = [name for name in DEVICE_METHODS if not callable(getattr(device, name))]
    return f"a {kind} whose {', '.join(uncallable)} is no method" if uncallable else None
