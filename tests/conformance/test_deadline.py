"""A device's method that never returns fails its case by name, and the later cases at once."""

from __future__ import annotations

import time
from threading import Event

import pytest
from heald_conformance import Broken, device_deadline
from heald_conformance.case import case
from heald_conformance.device_deadline import run_before_deadline


class Hanging:
    """A device whose methods wait until the test ends."""

    def __init__(self) -> None:
        self.end = Event()

    def synchronize(self) -> None:
        self.end.wait()

    def copy_in(self) -> None:
        self.synchronize_inside(self.end)

    @staticmethod
    def synchronize_inside(end: Event) -> None:
        end.wait()

    def allocate(self) -> None:
        self.end.wait()


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(device_deadline, "DEVICE_DEADLINE", 0.1)
    monkeypatch.setattr(device_deadline, "hanging_methods", {})
    hanging = Hanging()
    yield hanging
    hanging.end.set()


@pytest.mark.parametrize("method", ["synchronize", "copy_in", "allocate"])
def test_a_method_that_never_returns_is_named_and_the_later_cases_fail_at_once(device, method):
    with pytest.raises(Broken, match=f"a title\n.*within 0.1 s\n.*{method} of the device hangs"):
        run_before_deadline(device, getattr(device, method), "a title")
    start = time.perf_counter()
    with pytest.raises(Broken, match=f"{method} of the device hangs still"):
        run_before_deadline(device, lambda: None, "another title")
    assert time.perf_counter() - start < 0.1


def test_a_case_that_hangs_elsewhere_is_not_the_devices_fault(device):
    with pytest.raises(Broken, match="the end of the call within 0.1 s"):
        run_before_deadline(device, device.end.wait, "a title")
    assert run_before_deadline(device, lambda: 7, "another title") == 7


def test_results_and_faults_of_a_case_come_back_from_its_thread(device):
    with pytest.raises(KeyError):
        run_before_deadline(device, lambda: {}["none"], "a title")
    case("memory.copies_of_no_bytes_do_nothing")("EXAMPLE:0")
