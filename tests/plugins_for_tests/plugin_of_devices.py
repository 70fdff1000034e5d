"""A plugin of the tests alone: kernels whose results have an unforeseen shape or type; a kernel for devices outside
host memory alone."""

from __future__ import annotations

import numpy as np
from heald.api import AsyncValue, OpSpec, hookimpl, info

HEALD_API = (1, 0)


@hookimpl
def heald_ops(registry):
    registry.add(OpSpec("Test>Positive", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"],
                        metadata=lambda attrs, x: info(x.dtype, (None,))))
    registry.add(OpSpec("Test>Untold", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"]))
    for name in ("Wrong", "WrongLater", "Elsewhere"):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"],
                            metadata=lambda attrs, x: x))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)
    for device_type in ("EXAMPLE", "SIM", "OPENCL"):
        registry.kernels(device_type, elsewhere)


def elsewhere(kernels):
    for op in ("Test>Elsewhere", "Test>Untold"):
        kernels.kernel(op, alias={0: 0})(lambda b: None)


def wrong(x):
    """Of another type where the first number is negative."""
    return x.astype(np.float64) if x.flat[0] < 0 else x.copy()


def later(x):
    value = AsyncValue()
    value.emplace(wrong(x))
    return value


def register(kernels):
    kernels.kernel("Test>Positive", allocates=True)(lambda b: lambda x: x[x > 0])
    kernels.kernel("Test>Untold", allocates=True)(lambda b: lambda x: x.copy())
    kernels.kernel("Test>Wrong", allocates=True)(lambda b: wrong)
    kernels.kernel("Test>WrongLater", asynchronous=True)(lambda b: later)
