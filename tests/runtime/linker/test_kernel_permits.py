"""A device that declares how many kernels it runs at once never runs more, whoever asks."""

from __future__ import annotations

import gc
import threading

import heald
import numpy as np
import pytest
from builders.graphs import graph, node, placeholder
from heald.errors import HealdError
from heald.runtime.linker import kernel_permits

PLUGIN = '''
import threading
from time import sleep
from heald.api import OpSpec, hookimpl

HEALD_API = (1, 0)
HEALD_ID = "permits"
lock, running, peaks = threading.Lock(), [0], []


@hookimpl
def heald_ops(registry):
    for name in ("Plain", "Attached", "Allocated", "Failing"):
        registry.add(OpSpec(f"Slots>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"],
                            metadata=lambda _, x: x))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)


def work(x):
    with lock:
        running[0] += 1
        peaks.append(running[0])
    sleep(0.002)
    with lock:
        running[0] -= 1
    return -x


class Attached:
    how, captures = "slowly", False

    def run(self, x, out):
        out[...] = work(x)

    def attach(self, inputs, outputs):
        return lambda: self.run(inputs[0], outputs[0])


def fail(x, out):
    work(x)
    raise ValueError("no")


def register(kernels):
    kernels.kernel("Slots>Plain")(lambda b: Attached().run)
    kernels.kernel("Slots>Attached")(lambda b: Attached())
    kernels.kernel("Slots>Allocated", allocates=True)(lambda b: work)
    kernels.kernel("Slots>Failing")(lambda b: fail)
'''
X = np.float32([1, -2, 3])


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("permits") / "permits_plugin.py"
    path.write_text(PLUGIN, "utf-8")
    return str(path)


def session_with(plugin_path, op, limit, shape=(3,)):
    nodes = [placeholder("x", shape), *(node(f"y{i}", f"Slots>{op}", "x") for i in range(3))]
    session = heald.Session(graph(*nodes), {"plugins": {"load": [plugin_path]}})
    if limit is not None:
        session.host.records("CPU")[0].device.attributes["kernels_at_once"] = limit
    return session


def peak_of(session, runs=6, threads=4):
    """Run the session in several threads. Return the most kernels that ran at once, and the results."""
    import permits_plugin

    permits_plugin.peaks.clear()
    results = []

    def work():
        for _ in range(runs):
            results.append([y.tolist() for y in session.run(["y0", "y1", "y2"], {"x": X})])

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(permits_plugin.peaks), results


@pytest.mark.parametrize("shape", [(3,), None])
@pytest.mark.parametrize("op", ["Plain", "Attached", "Allocated"])
@pytest.mark.parametrize("limit", [1, 2])
def test_no_more_kernels_run_at_once_than_the_device_declares(plugin_path, op, limit, shape):
    with session_with(plugin_path, op, limit, shape) as session:
        peak, results = peak_of(session)
    assert peak <= limit
    assert results == [[(-X).tolist()] * 3] * 24


def test_a_device_that_declares_nothing_has_no_limit(plugin_path):
    with session_with(plugin_path, "Plain", None) as session:
        assert peak_of(session)[0] > 1


def test_a_kernel_that_fails_gives_its_permit_back(plugin_path):
    with session_with(plugin_path, "Failing", 1) as session:
        for _ in range(3):
            with pytest.raises(HealdError, match="no"):
                session.run("y0", {"x": X})


def test_a_kernel_with_permits_keeps_its_own_properties(plugin_path):
    with session_with(plugin_path, "Attached", 1) as session:
        prepared = session.prepare(["y0"], ["x"])
        prepared([X])
        permits_before = len(kernel_permits.permits_by_device)
    assert permits_before
    del session, prepared
    gc.collect()
    assert len(kernel_permits.permits_by_device) < permits_before
