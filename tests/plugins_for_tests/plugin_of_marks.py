"""A plugin of the tests alone: ops that note when they have run, on the CPU, in a thread and on simulated devices."""

from __future__ import annotations

import threading
import time

import numpy as np
from heald.api import AsyncValue, OpSpec, errors, hookimpl, info
from heald_sim.native import Kernel

HEALD_API = (1, 0)
SLOW = 1e9  # operations of a slow node: longer, on a simulated device, than all that a test does otherwise
marks: list[str] = []  # nodes, in the order in which they ended


@hookimpl
def heald_ops(registry):
    for name in ("Mark", "Later"):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T", "y: T"], outputs=["z: T"], attrs=["T: type"],
                            metadata=lambda attrs, x, y: info(x.dtype, x.shape)))
    for name in ("Tell", "TellLater", "Check"):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T"], outputs=[], attrs=["T: type"],
                            metadata=lambda attrs, x: ()))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", for_the_cpu)
    registry.kernels("SIM", for_simulated_devices)


def add(node, x, y, out):
    np.add(x, y, out=out)
    marks.append(node)


def for_the_cpu(kernels):
    kernels.kernel("Test>Mark")(lambda b: lambda x, y, out: add(b.node, x, y, out))
    kernels.kernel("Test>Tell")(lambda b: lambda x: marks.append(b.node))

    @kernels.kernel("Test>Check")
    def check(b):
        def run(x):
            if np.isnan(x).any():
                raise errors.InvalidArgument("not a number")
            marks.append(b.node)
        return run

    @kernels.kernel("Test>Later", asynchronous=True)
    def later(b):
        return lambda x, y: soon(b.node, lambda: x + y)

    @kernels.kernel("Test>TellLater", asynchronous=True)
    def tell_later(b):
        return lambda x: soon(b.node, lambda: None)


def soon(node, result):
    """A value that another thread completes."""
    value = AsyncValue()

    def work():
        time.sleep(0.002 if "slow" in node else 0.0002)
        marks.append(node)
        value.emplace(result())

    threading.Thread(target=work, daemon=True).start()
    return value


def for_simulated_devices(kernels):
    for op, compute in (("Test>Mark", add), ("Test>Tell", lambda node, x: marks.append(node))):
        @kernels.kernel(op)
        def bind_launch(b, compute=compute):
            kernel = Kernel(b.op, b.node, lambda *arrays: compute(b.node, *arrays), tuple(i.meta for i in b.inputs),
                            b.outputs, SLOW if "slow" in b.node else 1.0)
            return lambda *buffers: b.device.native.launch(b.stream, kernel, buffers)
