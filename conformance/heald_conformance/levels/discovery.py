"""Discovery: a scan opens no device, names stay the same, and a device can be opened and closed again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import heald
import numpy as np
from heald.api import STREAM, Device

from ..case import sentence
from ..subject import Subject, whatever_comes
from ..verdict import NotApplicable, expect, short_repr

METHODS = ("open", "close", "allocate", "free", "copy_in", "copy_out", "record", "synchronize")
OPTIONAL = ("adopt", "capture", "copy_peer", "elapsed", "figures", "reaches", "wrap")
TEXTS = ("model", "driver")
UIDS_SCRIPT = ("import json, sys, heald; "
               "print(json.dumps([r.device.uid for r in heald.HostContext().records(sys.argv[1]) if r.device]))")


def uids(host: Any, device_type: str) -> list[tuple[str, str]]:
    return [(r.name, r.device.uid) for r in host.records(device_type) if r.device is not None]


@contextmanager
def another_host(on: Subject) -> Iterator[Device]:
    """The device, opened in a host of its own. Raises NotApplicable where the plugin allows one host at a time."""
    host = heald.HostContext()
    try:
        yield host.open(on.name)
    except heald.errors.NotFound as error:
        raise NotApplicable(f"another host does not find it: {error}") from None
    except heald.errors.Unavailable as error:
        raise NotApplicable(f"the plugin lets one host at a time open it: {error}") from None
    finally:
        with whatever_comes("closing the device", expected="no exception", rule="Device.close"):
            host.close()


def comes_back(device: Device) -> bool:
    """True if eight bytes return unchanged from a buffer of the device."""
    host, back = np.arange(8, dtype=np.uint8), np.zeros(8, np.uint8)
    buffer = device.allocate(8)
    device.copy_in(host, buffer, STREAM)
    device.copy_out(buffer, back, STREAM)
    device.synchronize(device.record(STREAM))
    device.free(buffer)
    return bool(np.array_equal(host, back))


@sentence()
def a_device_has_all_that_the_protocol_asks_for(on: Subject) -> None:
    missing = [name for name in METHODS if not callable(getattr(on.device, name, None))]
    expect(not missing, "methods are missing", expected=", ".join(METHODS), got=f"without {missing}", rule="Device")
    odd = [name for name in OPTIONAL if not callable(getattr(on.device, name, len))]
    expect(not odd, "optional methods are there and cannot be called", expected="methods", got=odd, rule="Device")
    expect(on.device.type == on.type, "the type is not the one that was announced", expected=on.type,
           got=short_repr(on.device.type), rule="Device")


@sentence()
def attributes_of_a_device_fit_listings(on: Subject) -> None:
    attributes = dict(on.device.attributes)
    memory, visible = attributes.get("memory"), attributes.get("host_visible", False)
    expect(memory is None or (isinstance(memory, int) and memory > 0), "`memory`", expected="bytes, as an int",
           got=short_repr(memory), rule="Device.attributes")
    expect(isinstance(visible, bool), "`host_visible`", expected="True or False", got=short_repr(visible),
           rule="Device.attributes")
    for name in TEXTS:
        expect(isinstance(attributes.get(name, ""), str), f"`{name}`", expected="text",
               got=short_repr(attributes.get(name)), rule="Device.attributes")
    with whatever_comes("attributes are printed by `heald devices --json`", expected="what JSON can hold",
                        rule="Device.attributes"):
        json.dumps(attributes)


@sentence()
def every_device_has_a_uid_of_its_own(on: Subject) -> None:
    device_uids = [uid for _, uid in uids(on.host, on.type)]
    expect(all(isinstance(uid, str) and uid for uid in device_uids), "uids are no text", expected="text",
           got=short_repr(device_uids), rule="Device.uid")
    expect(len(set(device_uids)) == len(device_uids), "devices share a uid", expected="all different",
           got=device_uids, rule="Device.uid")


@sentence()
def a_second_scan_finds_the_same_devices_in_the_same_order(on: Subject) -> None:
    first, again, third = (uids(host, on.type) for host in (on.host, heald.HostContext(), heald.HostContext()))
    expect(first == again == third, "two scans differ", expected=first, got=again if again != first else third,
           rule="scan")


@sentence()
def another_process_finds_the_same_uids(on: Subject) -> None:
    done = subprocess.run([sys.executable, "-c", UIDS_SCRIPT, on.type], capture_output=True, text=True, check=False)  # noqa: S603
    expect(done.returncode == 0, "another process cannot scan", expected="uids", got=done.stderr[-300:], rule="scan")
    other_uids = json.loads(done.stdout.splitlines()[-1])
    if not other_uids:
        raise NotApplicable("another process does not have its plugin: it is registered in this one only")
    own_uids = [uid for _, uid in uids(on.host, on.type)]
    expect(other_uids == own_uids, "another process finds other uids", expected=own_uids, got=other_uids,
           rule="Device.uid")


@sentence()
def a_scan_opens_no_device(on: Subject) -> None:
    records = heald.HostContext().records(on.type)
    opened = [r.name for r in records if r.device is not None and hasattr(r.device, "native")]
    expect(not opened, "devices have `native`, which open sets, after a scan", expected="no device is open",
           got=opened, rule="scan")


@sentence()
def every_pack_of_kernels_registers(on: Subject) -> None:
    on.kernels()
    failures = {plugin: str(error) for (kind, plugin), error in on.host.registries.kernels.failures.items()
                if kind == on.type}
    expect(not failures, "packs failed to register", expected="no failure", got=failures, rule="register")


@sentence()
def two_hosts_have_a_device_open_at_once(on: Subject) -> None:
    with another_host(on) as device:
        expect(comes_back(device), "a copy in the second host", expected="the bytes that went in", got="others",
               rule="Device.open")
        expect(comes_back(on.device), "a copy in the first host while there is a second", got="others",
               expected="the bytes that went in", rule="Device.open")
    expect(comes_back(on.device), "a copy in the first host after the second was closed", got="others",
           expected="the bytes that went in", rule="Device.close")


@sentence()
def a_device_is_opened_and_closed_again_and_again(on: Subject) -> None:
    for _ in range(3):
        with another_host(on) as device:
            expect(comes_back(device), "a copy in a host that is not the first", got="others",
                   expected="the bytes that went in", rule="Device.close")
