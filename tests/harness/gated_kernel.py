"""A plugin whose kernel of Neg waits for a gate, so that tests see calls whose kernel has not run."""

from __future__ import annotations

import threading

import numpy as np
from heald.api import hookimpl

HEALD_API = (1, 1)
GATE_TIMEOUT = 30  # seconds, after which a test that forgot to open the gate goes on
gate = threading.Event()
begun: list[float] = []  # the first element of each input, in the order in which kernels began
running: list[int] = []  # the number of kernels that ran when each kernel began
_active: list[None] = []


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register, priority=100)


def register(kernels):
    @kernels.kernel("Neg")
    def bind(b):
        return neg


def neg(x, out):
    _active.append(None)
    begun.append(float(x.reshape(-1)[0]))
    running.append(len(_active))
    gate.wait(GATE_TIMEOUT)
    np.negative(x, out)
    _active.pop()


def close() -> None:
    """Close the gate, and forget earlier kernels."""
    gate.clear()
    begun.clear()
    running.clear()
