"""A plugin of the tests alone: an OpenCL kernel that takes milliseconds, and an op that sees whether it has ended."""

from __future__ import annotations

import numpy as np
from weft.api import OpSpec, hookimpl

WEFT_API = (1, 0)
SOURCE = """kernel void slow(global const float *x, global float *out, const ulong steps) {
    float v = x[0]; for (ulong i = 0; i < steps; i++) v = sin(v) + 1.0f; out[0] = v; }"""
queues = []
idle: list[bool] = []


@hookimpl
def weft_ops(registry):
    for name in ("Slow", "See"):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"],
                            metadata=lambda attrs, x: x))


@hookimpl
def weft_kernels(registry):
    registry.kernels("OPENCL", for_opencl)
    registry.kernels("CPU", for_the_cpu)


def for_opencl(kernels):
    @kernels.kernel("Test>Slow")
    def slow(b):
        native = b.device.native
        queues.append(native.commands)
        launch, steps = native.kernel(SOURCE, "slow"), np.uint64(500_000)
        return lambda x, out: launch((1,), None, x, out, steps)


def for_the_cpu(kernels):
    @kernels.kernel("Test>See")
    def see(b):
        return lambda x, out: (idle.append(queues[-1].is_idle), np.copyto(out, x))
