"""A plugin of the tests alone: an OpenCL kernel that takes milliseconds, and an op that sees whether it has ended.

It looks at the kernel's own event: the queue may hold the copy of its result by then.
"""

from __future__ import annotations

import numpy as np
from heald.api import OpSpec, hookimpl

HEALD_API = (1, 0)
COMPLETE = 0  # CL_COMPLETE
SOURCE = """kernel void slow(global const float *x, global float *out, const ulong steps) {
    float v = x[0]; for (ulong i = 0; i < steps; i++) v = sin(v) + 1.0f; out[0] = v; }"""
events = []
ended: list[bool] = []


@hookimpl
def heald_ops(registry):
    for name in ("Slow", "See"):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"],
                            metadata=lambda attrs, x: x))


@hookimpl
def heald_kernels(registry):
    registry.kernels("OPENCL", for_opencl)
    registry.kernels("CPU", for_the_cpu)


def for_opencl(kernels):
    @kernels.kernel("Test>Slow")
    def slow(b):
        native = b.device.native
        launch, steps = native.kernel(SOURCE, "slow"), np.uint64(500_000)
        return lambda x, out: (launch((1,), None, x, out, steps), events.append(native.commands.record()))


def for_the_cpu(kernels):
    @kernels.kernel("Test>See")
    def see(b):
        return lambda x, out: (ended.append(bool(events) and events.pop().command_execution_status == COMPLETE),
                               np.copyto(out, x))
