"""Requests for devices that a graph makes in odd ways: each has one meaning for each `[placement] fallback`."""

from __future__ import annotations

import warnings

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import HealdError, HealdWarning, InvalidArgument

X = np.float32([1, -2, 3])
MET = ["", "/job:*", "/job:localhost", "/job:localhost/replica:0/task:0", "/replica:0", "/task:0", "/task:*",
       "/job:localhost/replica:*/task:*/device:*:*", "/device:*", "/device:*:*", "/device:*:0", "/device:CPU:*",
       "/job:*/device:CPU:0", "/task:0/device:CPU:0", "/cpu:0", "cpu:0", "/CPU:*", "/device:cpu:0"]
UNMET = {  # the request, and the text that its warning and its error have
    "/job:worker": "/job:worker",
    "/replica:1": "/replica:1",
    "/task:1": "/task:1",
    "/job:localhost/task:3": "/job:localhost/task:3",
    "/job:worker/device:CPU:0": "/job:worker/device:CPU:0",
    "/task:1/device:CPU:0": "/task:1/device:CPU:0",
    "/task:1/device:*:0": "/task:1",
    "/device:NONE:0": "NONE:0",
    "/NONE:*": r"NONE:\*",
    "/device:CPU:9": "CPU:9",
}
MALFORMED = ["C P", "/job:", "/job:1a", "/job:a-b", "/task:", "/task:-1", "/task:x", "/task:99999999999", "/replica:x",
             "/device:", "/device:CPU:", "/device:CPU:x", "/device:1", "/", "//", "/CPU:0/", "/job:a/b:c:d"]


def result_of(request, fallback):
    nodes = graph(placeholder("x", (3,)), node("y", "Neg", "x", device=request), node("z", "Abs", "x"))
    with heald.Session(nodes, {"placement": {"fallback": fallback}}) as session:
        assert session.run("z", {"x": X}).tolist() == [1, 2, 3]  # a fault of one node is no other's
        return session.run("y", {"x": X}).tolist()


@pytest.mark.parametrize("fallback", ["allow", "warn", "error"])
@pytest.mark.parametrize("request_text", MET)
def test_a_request_that_a_device_of_this_process_meets_is_no_matter_of_fallback(request_text, fallback):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert result_of(request_text, fallback) == [-1, 2, -3]


@pytest.mark.parametrize("request_text", sorted(UNMET))
def test_an_absent_job_task_type_or_index_goes_by_fallback(request_text):
    text = UNMET[request_text]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert result_of(request_text, "allow") == [-1, 2, -3]
    with pytest.warns(HealdWarning, match=f"runs on {text}: .*nodes y"):
        assert result_of(request_text, "warn") == [-1, 2, -3]
    with pytest.raises(InvalidArgument, match=f"the node asks for {text}, which cannot serve it") as caught:
        result_of(request_text, "error")
    assert caught.value.node == "y"


@pytest.mark.parametrize("fallback", ["allow", "warn", "error"])
@pytest.mark.parametrize("request_text", MALFORMED)
def test_a_malformed_request_is_an_error_of_its_node_whatever_fallback_says(request_text, fallback):
    with pytest.raises(InvalidArgument, match="is not a device name") as caught:
        result_of(request_text, fallback)
    assert caught.value.node == "y"


def test_a_request_for_another_task_does_not_move_its_colocated_nodes_silently():
    nodes = graph(placeholder("x", (3,)), node("y", "Neg", "x", device="/task:1"),
                  node("z", "Abs", "x", _class=[b"loc:@y"]))
    with (heald.Session(nodes, {"placement": {"fallback": "error"}}) as session,
          pytest.raises(HealdError, match="colocated with 'y', which asks for /task:1")):
        session.run("z", {"x": X})


def test_clear_drops_requests_for_other_processes_too():
    nodes = graph(placeholder("x", (3,)), node("y", "Neg", "x", device="/job:worker/task:7"))
    with heald.Session(nodes, {"placement": {"fallback": "error", "clear": True}}) as session:
        assert session.run("y", {"x": X}).tolist() == [-1, 2, -3]
