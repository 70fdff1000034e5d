"""With `[debug] synchronous` each kernel is awaited, so that a fault of the device names the node that caused it."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import HealdError
from heald.runtime.config.config import load_config
from heald.runtime.service.runtime import Runtime

X = np.float32([1, 2, 3])


def session(monkeypatch, **debug):
    """Two kernels on a simulated device that counts how often it is awaited."""
    own_runtime = Runtime(load_config({"debug": debug}))
    nodes = graph(placeholder("x", (3,)), node("first", "Neg", "x", device="SIM:0"),
                  node("second", "Exp", "first", device="SIM:0"))
    device = own_runtime.host.open("SIM:0")
    kind = type(device)
    synchronize, counted = kind.synchronize, []

    def synchronize_counted(self, event):
        counted.append(event)
        return synchronize(self, event)

    monkeypatch.setattr(kind, "synchronize", synchronize_counted)
    return heald.Session(nodes, own_runtime), kind, counted


@pytest.mark.parametrize("is_on", [False, True])
def test_each_kernel_is_awaited_only_in_debug_mode(monkeypatch, is_on):
    open_session, _, counted = session(monkeypatch, synchronous=is_on)
    with open_session:
        step = open_session.make_callable("second", ["x"])
        step(X)
        counted.clear()
        assert np.allclose(step(X), np.exp(-X))
    own_count = len(counted)
    open_session, _, counted = session(monkeypatch, synchronous=not is_on)
    with open_session:
        step = open_session.make_callable("second", ["x"])
        step(X)
        counted.clear()
        step(X)
    assert (own_count > len(counted)) is is_on


def test_a_fault_behind_a_kernel_names_its_node_plugin_and_method(monkeypatch):
    open_session, kind, _ = session(monkeypatch, synchronous=True)
    with open_session:
        step = open_session.make_callable("second", ["x"])
        step(X)

        def synchronize(self, event):
            raise RuntimeError("illegal address")

        monkeypatch.setattr(kind, "synchronize", synchronize)
        with pytest.raises(HealdError, match="illegal address") as caught:
            step(X)
    assert (caught.value.node, caught.value.device) == ("first", "SIM:0")
    assert (caught.value.plugin, caught.value.method) == ("sim", "synchronize")
