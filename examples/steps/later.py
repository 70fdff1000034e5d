"""A kernel whose result comes later, for the program beside it: `lesson.add_later.i32` adds in a queued task.

    heald run examples/steps/race.mlir --plugin examples/steps/later.py
"""

from __future__ import annotations

from heald.api import I32, HostKernels, KernelPackRegistrar, Step, hookimpl

HEALD_API = (1, 4)


@hookimpl
def heald_kernels(registry: KernelPackRegistrar) -> None:
    registry.host_kernels(register)


def register(kernels: HostKernels) -> None:
    kernels.kernel("lesson.add_later.i32", step=True, asynchronous=True)(add_later)


def add_later(step: Step, a: I32, b: I32) -> I32:
    """Return a future of the sum. The step goes on without it."""
    return step.enqueue(lambda: (a + b + 2**31) % 2**32 - 2**31)
