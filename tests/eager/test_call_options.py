"""Options of one call: its location, its diagnostics handler and its host; and sets of attributes made one by one."""

from __future__ import annotations

import sys

import heald
import numpy as np
import pytest
from harness.eager_runtime import core
from heald import errors

SMALL = np.float32([3, 1, 2])
PLACE = errors.Location("model.py", 12, 3)


def test_errors_of_a_call_have_the_location_that_its_caller_names():
    bad = heald.execute("GatherV2", SMALL, [7], 0, location=PLACE)
    with pytest.raises(errors.InvalidArgument) as late:
        bad.numpy()
    with pytest.raises(errors.InvalidArgument) as at_once:
        heald.execute("AddV2", SMALL, np.ones(2, np.float32), location=PLACE)
    assert late.value.location == at_once.value.location == PLACE
    x = heald.TensorHandle(SMALL)
    for _ in range(3):
        assert heald.execute("AddV2", x, x, location=PLACE).numpy().tolist() == [6, 2, 4]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("device", ["CPU:0", "SIM:0"])
def test_a_diagnostics_handler_of_a_call_gets_its_errors_in_place_of_the_hosts(seed, device):
    of_host: list[errors.HealdError] = []
    of_call: list[errors.HealdError] = []
    cpu = core(seed, diagnostics=of_host.append, asynchronous="always")
    if device == "CPU:0":
        line = sys._getframe().f_lineno + 1
        bad = cpu.execute("GatherV2", SMALL, [7], 0, diagnostics=of_call.append)
    else:
        x = cpu.handle(SMALL).to(device)
        x.numpy()
        cpu.host.open(device).native.fail("launch:1")
        line = sys._getframe().f_lineno + 1
        bad = cpu.execute("AddV2", x, x, diagnostics=of_call.append)
    with pytest.raises(errors.HealdError):
        cpu.execute("Neg", bad).numpy()
    assert [error.location.line for error in of_call] == [line]
    assert not of_host
    other = cpu.execute("GatherV2", SMALL, [7], 0)
    with pytest.raises(errors.InvalidArgument):
        other.numpy()
    assert (len(of_call), len(of_host)) == (1, 1)


def test_a_diagnostics_handler_that_raises_ends_nothing(monkeypatch):
    faults = []
    monkeypatch.setattr(sys, "unraisablehook", faults.append)
    bad = heald.execute("GatherV2", SMALL, [7], 0, diagnostics=lambda error: 1 / 0)
    with pytest.raises(errors.InvalidArgument, match=r"indices\[0\] = 7"):
        bad.numpy()
    assert [fault.exc_type for fault in faults] == [ZeroDivisionError]


def test_a_call_runs_on_the_host_that_its_caller_names():
    host = heald.HostContext(config={"eager": {"asynchronous": "always"}, "work_queue": {"name": "single_threaded"}})
    there = heald.execute("AddV2", SMALL, 1, host=host)
    assert not there.is_available  # the host's config counts, and its queue runs no task before a thread waits
    assert (there + 1).numpy().tolist() == [5, 3, 4]
    again = heald.execute("AddV2", there, heald.TensorHandle(SMALL), host=host)
    assert again.numpy().tolist() == [7, 3, 5]
    assert heald.execute("AddV2", SMALL, 1, host=heald.default_host()).is_available
    host.cancel_execution()
    with pytest.raises(errors.Cancelled):
        heald.execute("AddV2", SMALL, 1, host=host).numpy()
    assert heald.execute("AddV2", SMALL, 1).numpy().tolist() == [4, 2, 3]


@pytest.mark.parametrize(("options", "text"), [
    ({"location": "model.py:12"}, "expected a heald.errors.Location"),
    ({"location": ("model.py", 12)}, "expected a heald.errors.Location"),
    ({"diagnostics": []}, "expected a function"),
    ({"host": "CPU:0"}, "expected a HostContext"),
    ({"host": heald.HostContext}, "expected a HostContext"),
])
def test_an_option_of_another_type_is_an_error_of_the_call(options, text):
    with pytest.raises(errors.InvalidArgument, match=text) as raised:
        heald.execute("AddV2", SMALL, 1, **options)
    assert raised.value.location.file == __file__


def test_a_set_of_attributes_is_made_one_by_one_and_never_changes():
    empty = heald.OpAttrs()
    one = empty.set("transpose_b", True)
    both = one.set("transpose_a", False)
    assert (len(empty), len(one), len(both)) == (0, 1, 2)
    assert both == heald.OpAttrs(transpose_a=False, transpose_b=True)
    assert hash(both) == hash(both.freeze())
    assert both.freeze() is both
    product = heald.execute("MatMul", np.ones((2, 3), np.float32), np.ones((2, 3), np.float32), attrs=both.freeze())
    assert product.numpy().tolist() == [[3, 3], [3, 3]]
    array = np.zeros(2)
    held = empty.set("value", array)
    array[:] = 1
    assert held["value"].array().tolist() == [0, 0]


@pytest.mark.parametrize(("name", "value", "text"), [
    ("T", "int32", "'T' is set already"), (3, 1, "name is a text"), ([], 1, "name is a text"),
    ("x", {}, "cannot be frozen"), ("x", [[], {}], "cannot be frozen"),
])
def test_a_set_of_attributes_refuses_a_second_value_and_values_without_a_frozen_form(name, value, text):
    with pytest.raises(errors.InvalidArgument, match=text):
        heald.OpAttrs(T="float32").set(name, value)
