"""An exception of any class in a device's own code is PluginError with its cause; errors of heald pass."""

from __future__ import annotations

import importlib

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import PluginError, ResourceExhausted

DEVICE = """
import builtins
from heald.api import errors, hookimpl
from heald_example_device.device import Example

HEALD_API = (1, 0)
HEALD_ID = "faulty"
FAILING = []  # the method that fails, and the class of its exception

class Faulty(Example):
    type = "FAULTY"

    def _fail(self, method):
        if FAILING and FAILING[0] == method:
            raise getattr(builtins, FAILING[1], errors.ResourceExhausted)("boom")

    def allocate(self, nbytes):
        self._fail("allocate")
        return super().allocate(nbytes)

    def copy_in(self, host, buffer, stream):
        self._fail("copy_in")
        super().copy_in(host, buffer, stream)

    def copy_out(self, buffer, host, stream):
        self._fail("copy_out")
        super().copy_out(buffer, host, stream)

    def record(self, stream):
        self._fail("record")
        return super().record(stream)

    def synchronize(self, event):
        self._fail("synchronize")
        super().synchronize(event)

@hookimpl
def heald_devices(registry):
    registry.device(type="FAULTY", scan=lambda config: [Faulty(0, 1 << 20)],
                    kernels="heald_example_device.kernels:register_kernels")
"""


@pytest.fixture
def step(tmp_path, monkeypatch):
    """A step on the device, which was opened and probed, and the list that makes it fail."""
    (tmp_path / "faulty_device.py").write_text(DEVICE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("faulty_device")
    session = heald.Session(graph(placeholder("x", (3,)), node("y", "Neg", "x")), device="FAULTY:0",
                            config={"plugins": {"load": ["faulty_device"]}, "placement": {"fallback": "error"}})
    function = session.make_callable("y", ["x"])
    assert function(np.float32([1, 2, 3])).tolist() == [-1, -2, -3]
    yield function, module.FAILING
    module.FAILING.clear()
    session.close()


@pytest.mark.parametrize("method", ["copy_in", "copy_out", "record", "synchronize"])
@pytest.mark.parametrize("kind", ["TypeError", "ValueError", "KeyError", "OSError", "ZeroDivisionError"])
def test_an_exception_of_a_device_is_never_a_users_mistake(step, method, kind):
    function, failing = step
    failing[:] = method, kind
    message = rf"{method} of device FAULTY:0 \(plugin faulty\) failed with {kind}"
    with pytest.raises(PluginError, match=message) as caught:
        function(np.float32([1, 2, 3]))
    assert type(caught.value.__cause__).__name__ == kind


@pytest.mark.parametrize("method", ["copy_in", "copy_out", "record", "synchronize"])
def test_an_error_of_heald_that_a_device_raises_stays_itself(step, method):
    function, failing = step
    failing[:] = method, "ResourceExhausted"
    with pytest.raises(ResourceExhausted, match="boom"):
        function(np.float32([1, 2, 3]))


@pytest.mark.parametrize(("method", "is_named"), [("synchronize", True), ("copy_in", False), ("record", False)])
def test_the_hint_of_a_failed_wait_names_the_mode_that_finds_the_node(step, method, is_named):
    function, failing = step
    failing[:] = method, "ValueError"
    with pytest.raises(PluginError) as caught:
        function(np.float32([1, 2, 3]))
    assert ("HEALD_DEBUG__SYNCHRONOUS=1 names the node" in caught.value.hint) is is_named
    assert "[plugins] block = ['faulty'] leaves its devices out" in caught.value.hint
