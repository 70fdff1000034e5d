"""Devices that a caller asks for by `device=`: a name without a device is an error at every door."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import HealdError, HealdWarning, InvalidArgument, NotFound
from heald.graphs.session.ahead_of_time import compile_model

X = np.float32([1, -2, 3])
NODES = graph(placeholder("x", (3,)), node("y", "Neg", "x"))


@pytest.fixture
def files(tmp_path):
    heald.graphdef.dump(NODES, tmp_path / "m.pb")
    heald.bef.dump(compile_model(tmp_path / "m.pb"), tmp_path / "m.bef")
    return tmp_path


DOORS = {
    "Session": lambda device, _: heald.Session(NODES, device=device),
    "load": lambda device, files: heald.load(files / "m.pb", device=device),
    "compile": lambda device, files: compile_model(files / "m.pb", device=device),
    "compiled": lambda device, files: heald.load(files / "m.bef", device=device),
    "function": lambda device, _: heald.function(NODES, device=device),
    "execute": lambda device, _: heald.execute("Neg", X, device=device),
    "handler": lambda device, _: heald.execute("Neg", X, handler=[device]),
    "to": lambda device, _: heald.TensorHandle(X).to(device),
}


@pytest.mark.parametrize("door", sorted(DOORS))
@pytest.mark.parametrize("device", ["FOO:0", "CPU:9", "/job:foo/device:CPU:0", "/job:localhost", "/replica:1", ""])
def test_a_name_without_a_device_is_an_error_at_every_door(files, door, device):
    if door == "handler" and ":" not in device:
        pytest.skip("any other text names a handler")
    with pytest.raises(HealdError) as caught:
        DOORS[door](device, files)
    assert isinstance(caught.value, NotFound) or door == "compiled"
    assert repr(device)[1:-1] in str(caught.value)


@pytest.mark.parametrize("door", sorted(DOORS))
def test_text_that_is_no_name_of_a_device_is_an_error_at_every_door(files, door):
    with pytest.raises(InvalidArgument, match="'C P U:0' is not a device name"):
        DOORS[door]("C P U:0", files)


@pytest.mark.parametrize("door", sorted(DOORS))
@pytest.mark.parametrize("device", ["CPU:0", "cpu:0", "/job:localhost/replica:0/task:0/device:CPU:0", "/device:CPU:0"])
def test_every_spelling_of_a_device_of_this_process_is_taken_at_every_door(files, door, device):
    DOORS[door](device, files)


@pytest.mark.parametrize("fallback", ["allow", "warn", "error"])
def test_fallback_is_for_what_a_graph_requests(fallback):
    with pytest.raises(NotFound, match="no plugin brings the device type FOO"):
        heald.Session(NODES, {"placement": {"fallback": fallback}}, device="FOO:0")
    tested_graph = graph(placeholder("x", (3,)), node("y", "Neg", "x", device="FOO:0"))
    if fallback == "warn":
        with pytest.warns(HealdWarning, match="nothing runs on FOO:0"):
            heald.Session(tested_graph, {"placement": {"fallback": fallback}})


def test_an_asked_device_is_remapped_before_it_is_looked_for():
    remap = {"placement": {"remap": {"FOO:*": "EXAMPLE:0"}}}
    assert heald.Session(NODES, remap, device="FOO:3").placement()["y"].device == "EXAMPLE:0"
    with pytest.raises(NotFound, match="device CPU:0: no such device"):
        heald.Session(NODES, {"placement": {"remap": {"CPU:*": "EXAMPLE:7"}}}, device="CPU:0")
