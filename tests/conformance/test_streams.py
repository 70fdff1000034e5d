"""The level of streams finds devices that forget waits, by each kind of work, and passes the others."""

from __future__ import annotations

from pathlib import Path

from conformance.reports import Report
from heald_conformance.levels.streams import ORDERS

PLUGIN = f'["{Path(__file__).parent / "planted_streams.py"}"]'
ORDER_CASE = "streams.work_behind_an_event_of_another_stream_comes_after_it"
RUN_CASE = "streams.copies_beside_kernels_change_no_result"
BEHIND_KERNELS = {order for order in ORDERS if order.startswith("the kernels")}
FOUND = {  # device -> the orders of work that it breaks
    "STREAMING:0": set(), "HEEDLESS:0": {*ORDERS}, "HURRIED:0": BEHIND_KERNELS, "HASTY:0": {*ORDERS} - BEHIND_KERNELS,
    "CROSSED:0": {*ORDERS},
}


def test_devices_that_forget_waits_are_found_by_the_work_that_needs_them(tmp_path):
    names = [argument for name in FOUND for argument in ("--device", name)]
    report = Report(tmp_path, *names, "-k", "streams", plugins=PLUGIN)
    orders = {device: {name.partition("[")[2].rstrip("]") for d, name in report.failures
                       if d == device and name.startswith(ORDER_CASE)} for device in FOUND}
    assert orders == FOUND
    runs = {device for device, name in report.failures if name.startswith(RUN_CASE)}
    assert runs == FOUND.keys() - {"STREAMING:0"}
    assert "rule:     Device.wait: wait(stream, event)" in report.failures["HURRIED:0", f"{RUN_CASE}[late copies]"]
    assert not report.skipped


def test_a_device_with_one_stream_keeps_its_order_and_one_on_host_memory_copies_nothing(tmp_path):
    report = Report(tmp_path, "--device", "EXAMPLE:0", "--device", "CPU:0", "-k", "streams")
    assert not report.failures
    assert {name for device, name in report.skipped if device == "EXAMPLE:0"} == {
        f"{ORDER_CASE}[{order}]" for order in ORDERS}
    assert len([1 for device, _ in report.skipped if device == "CPU:0"]) == len(ORDERS) + 4


def test_a_simulator_with_streams_reports_no_race(tmp_path, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGIN__SIM__COPY_STREAMS", "true")
    report = Report(tmp_path, "--device", "SIM:0", "-k", "streams")
    assert not report.failures
    assert not report.skipped
