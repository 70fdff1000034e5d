"""Devices come from the first plugin that has some; results of a scan are checked, and a fault names its owner."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest
from heald.errors import HealdWarning, Unavailable
from heald.runtime.config.config import load_config
from heald.runtime.contract.device import DeviceType
from heald.runtime.host.host import Host
from heald.runtime.host.registries import Registries
from heald.runtime.host.scan import DEVICE_METHODS
from heald.runtime.service.runtime import Runtime

COMPLETE = {name: lambda *_: None for name in DEVICE_METHODS} | {"type": "T", "uid": "one", "attributes": {}}


def device(**changes):
    return SimpleNamespace(**(COMPLETE | changes))


def unavailable(_):
    raise Unavailable("no driver", hint="install one")


def host(provider=None, **scans):
    """A host whose plugins all announce the device type T."""
    registries = Registries(provider={"T": provider} if provider else {})
    for plugin, scan in scans.items():
        registries.device_types.add(DeviceType("T", scan, None, 0, plugin))
    return Host(registries)


def rows(scanned_host):
    return [(record.name, record.plugin, record.status) for record in scanned_host.records("T")]


@pytest.mark.parametrize("first", [unavailable, lambda _: []])
def test_the_next_claimant_of_a_type_serves_when_the_first_has_no_device(first):
    scanned_host = host(a=first, b=lambda _: [device()])
    assert rows(scanned_host) == [("T:0", "b", "found")]
    assert scanned_host.registries.device_types.get("T").plugin == "b"


def test_kernels_that_were_registered_for_the_first_claimant_make_room_for_those_of_the_next():
    from heald.runtime.contract.kernel import KernelPack

    scanned_host = host(a=lambda _: [], b=lambda _: [device()])
    for plugin in "ab":
        scanned_host.registries.kernels.add_pack(
            KernelPack("T", lambda kernels: kernels.kernel("Add")(lambda b: None), 0, plugin, is_of_device_plugin=True))
    assert [k.pack for k in scanned_host.registries.kernels.candidates("Add", "T")] == ["a"]
    scanned_host.records("T")
    assert [k.pack for k in scanned_host.registries.kernels.candidates("Add", "T")] == ["b"]


def test_config_chooses_the_provider_of_a_type():
    scans = {"a": lambda _: [device()], "b": lambda _: [device()]}
    assert rows(host(**scans)) == [("T:0", "a", "found")]
    scanned_host = host("b", **scans)
    assert rows(scanned_host) == [("T:0", "b", "found")]
    assert scanned_host.registries.device_types.conflicts() == []


def test_a_type_without_devices_names_every_claimant():
    (record,) = host(a=lambda _: [], b=unavailable).records("T")
    assert (record.name, record.reason) == ("T:*", "plugin a found none; no driver")
    (record,) = host("a", a=lambda _: [], b=lambda _: [device()]).records("T")
    assert record.reason == "plugin a found none; plugin b announces T too"
    assert record.remedy == "set [placement.provider] T = 'b'"


@pytest.mark.parametrize(("scan_result", "reason"), [
    (object(), "an object of object, which has no type, uid, attributes, open, close"),
    (device(type="OTHER"), "a device of type 'OTHER', it announces 'T'"),
    (device(uid=7), "with the uid 7, expected a non-empty str"),
    (device(attributes=None), "whose attributes are NoneType, expected a mapping"),
    (device(open=3), "whose open is no method"),
    (device(attributes={"kernels_at_once": 0}), "with kernels_at_once 0, expected a number from 1"),
    (device(attributes={"kernels_at_once": "2"}), "with kernels_at_once '2', expected a number from 1"),
    (device(attributes={"kernels_at_once": True}), "with kernels_at_once True, expected a number from 1"),
])
def test_a_wrong_result_of_a_scan_is_a_record_and_the_other_devices_serve(scan_result, reason):
    scanned_host = host(a=lambda _: [scan_result, device()])
    with pytest.warns(HealdWarning, match=r"^device T:0 \(plugin a\): scan of plugin a gave "):
        assert rows(scanned_host) == [("T:0", "a", "unavailable"), ("T:1", "a", "found")]
    assert reason in scanned_host.records("T")[0].reason


def test_a_scan_that_raises_names_plugin_and_line():
    scanned_host = host(a=lambda _: 1 // 0)
    with pytest.warns(HealdWarning, match=r"T: scan of plugin a raised ZeroDivisionError: .*test_scan.py:\d+"):
        assert rows(scanned_host) == [("T:*", "a", "unavailable")]


def test_a_scan_that_returns_no_devices_at_all_says_what_it_returned():
    scanned_host = host(a=lambda _: None)
    with pytest.warns(HealdWarning, match="scan of plugin a returned NoneType, expected devices"):
        scanned_host.records("T")


def test_a_device_whose_close_raises_is_named_and_the_others_are_closed():
    closed = []

    def broken():
        raise RuntimeError("stuck")

    scanned_host = host(a=lambda _: [device(close=broken), device(close=lambda: closed.append(1))])
    for record in scanned_host.records("T"):
        record.is_open = True
    with pytest.warns(HealdWarning, match=r"device T:0 \(plugin a\) failed with RuntimeError: stuck"):
        scanned_host.close()
    assert closed == [1]


RIVAL = """
from heald.api import hookimpl
HEALD_API = (1, 0)
@hookimpl
def heald_kernels(registry):
    registry.kernels("EXAMPLE", lambda kernels: kernels.kernel("Neg", dtypes={"T": "float32"})(print))
"""


def test_a_warning_of_kernels_that_is_an_error_leaves_the_device_usable(tmp_path):
    (tmp_path / "rival_of_example.py").write_text(RIVAL)
    new_runtime = Runtime(load_config({"plugins": {"load": [str(tmp_path / "rival_of_example.py")]}}))
    with warnings.catch_warnings(action="error"), pytest.raises(HealdWarning, match="have kernels for Neg on EXAMPLE"):
        new_runtime.host.open("EXAMPLE:0")
    (record,) = new_runtime.host.records("EXAMPLE")
    assert (record.status, record.reason) == ("found", "")
    assert new_runtime.host.open("EXAMPLE:0") is record.device
