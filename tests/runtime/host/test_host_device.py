"""The host device, on which constants are folded, is the same for the life of a host."""

from __future__ import annotations

from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import Runtime


def host():
    return Runtime(load_config({"plugin": {"cpu": {"count": 2}}})).host


def test_the_first_device_in_order_is_opened_when_no_device_is_open():
    new_host = host()
    assert new_host.host_device() == "CPU:0"
    assert [record.name for record in new_host.devices_in_use()] == ["CPU:0"]


def test_a_device_that_is_open_is_preferred_and_stays_the_answer_when_others_open():
    new_host = host()
    new_host.open("CPU:1")
    assert new_host.host_device() == "CPU:1"
    assert [record.name for record in new_host.devices_in_use()] == ["CPU:1"]  # a question opens no second device
    new_host.open("CPU:0")
    assert [record.name for record in new_host.devices_in_use()] == ["CPU:0", "CPU:1"]
    assert new_host.host_device() == "CPU:1"
