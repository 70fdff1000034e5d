"""Lists of all devices: types that serve on request only are scanned in processes of their own."""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

import heald
import pytest
from heald.runtime.service import device_process, runtime

PLUGIN = """
import os
from heald.api import hookimpl

HEALD_API = (1, 0)
scans = []

@hookimpl
def heald_devices(registry):
    registry.device(type="APART", scan=scan)

def scan(config):
    scans.append(os.getpid())
    from heald_example_device.device import Example
    found = Example(0, 1 << 20)
    found.type = "APART"
    found.attributes["process"] = os.getpid()
    return [found]
"""


class Plugin(NamedTuple):
    path: str
    module: str

    @property
    def scans(self) -> list[int]:
        return sys.modules[self.module].scans


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A plugin of one file, in a process whose runtime has the CPU beside it."""
    monkeypatch.setattr(runtime, "process_scope", runtime.ProcessScope())
    monkeypatch.setenv("HEALD_PLUGINS__ALLOW", "cpu, tf_ops")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "apart_plugin_test.py"
    path.write_text(PLUGIN)
    monkeypatch.delitem(sys.modules, path.stem, raising=False)
    yield Plugin(str(path), path.stem)
    sys.modules.pop(path.stem, None)


def device_records():
    return {record.name: record for record in heald.devices()}


@pytest.mark.parametrize("named", ["path", "module"])
def test_a_type_below_the_hosts_is_scanned_in_a_process_of_its_own(plugin, named):
    heald.register(getattr(plugin, named))
    record = device_records()["APART:0"]
    assert plugin.scans == []
    assert (record.type, record.plugin, record.status, record.device) == ("APART", plugin.module, "found", None)
    assert record.attributes["memory"] == 1 << 20
    assert device_records()["CPU:0"].device is not None
    assert device_records()["APART:0"] is record


def test_a_type_in_use_is_listed_from_this_process(plugin):
    heald.register(plugin.path)
    heald.default_host().records("CPU")
    heald.default_host().records("APART")
    assert device_records()["APART:0"].device is not None
    assert len(plugin.scans) == 1


def test_a_module_object_is_scanned_here_since_no_other_process_has_it(plugin):
    heald.register(importlib.import_module(plugin.module))
    assert device_records()["APART:0"].device is not None


@pytest.mark.parametrize(("name", "value"), [("executable", ""), ("frozen", True)])
def test_a_program_without_a_command_for_python_scans_here(plugin, monkeypatch, name, value):
    monkeypatch.setattr(sys, name, value, raising=False)
    heald.register(plugin.path)
    assert device_records()["APART:0"].device is not None


def test_a_scan_that_does_not_answer_is_an_unavailable_device(plugin, monkeypatch, tmp_path):
    monkeypatch.setattr(device_process, "LARGEST_WAIT", 2)
    (tmp_path / "apart_plugin_test.py").write_text(PLUGIN.replace("scans.append", "import time; time.sleep(60)#"))
    heald.register(plugin.path)
    record = device_records()["APART:*"]
    assert (record.status, record.reason) == (
        "unavailable", "no answer of the process that scans APART:* (plugin apart_plugin_test) within 2 s")
    assert record.remedy == "look at its driver, or set [plugins] block = ['apart_plugin_test']"
