"""A plugin of the tests alone: kernels that cube their input, or do with their arrays what no kernel may."""

from __future__ import annotations

import ctypes
from functools import partial

import numpy as np
from heald.api import OpSpec, hookimpl, info

HEALD_API = (1, 0)


def writes(x, out):
    return np.power(x, 3, out)


def writes_and_counts(x, out):
    return np.power(x, 3, out), x.size


def returns(x, out):
    return np.power(x, 3)


def returns_a_tuple(x, out):
    return None, np.power(x, 3)


def writes_nothing(x, out):
    pass


def changes(x, out):
    np.power(x, 3, out)
    x += 1


def changes_past_numpy(x, out):
    """As a C library that does not know of read-only arrays."""
    np.power(x, 3, out)
    ctypes.memset(x.ctypes.data, 0x3F, x.nbytes)


RUNS = {run.__name__: run for run in (writes, writes_and_counts, returns, returns_a_tuple, writes_nothing, changes,
                                      changes_past_numpy)}


class Attached:
    """A kernel that has its buffers once for each frame."""

    def __init__(self, run):
        self.run = run

    def attach(self, inputs, outputs):
        return partial(self.run, *inputs, *outputs)


@hookimpl
def heald_ops(registry):
    for op in ("Cube", "CubeAttached", "CubeWithStep"):
        registry.add(OpSpec(f"Contract>{op}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type", "how: string"],
                            metadata=lambda attrs, x: info(x.dtype, x.shape)))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)
    registry.kernels("EXAMPLE", lambda kernels: kernels.kernel("Contract>Cube")(on_device))


def register(kernels):
    kernels.kernel("Contract>Cube")(lambda b: RUNS[b.attrs["how"]])
    kernels.kernel("Contract>CubeAttached")(lambda b: Attached(RUNS[b.attrs["how"]]))

    @kernels.kernel("Contract>CubeWithStep", step=True)
    def with_step(b):
        return lambda step, x, out: RUNS[b.attrs["how"]](x, out)


def on_device(b):
    return {"writes_nothing": lambda x, out: None, "returns": lambda x, out: np.zeros(3, np.float32)}[b.attrs["how"]]
