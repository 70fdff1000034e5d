"""Kernels that are bound twice, for all threads and for one, which runs while other processes need the cores.

The threads of a recurrent layer meet in each step. Beside a busy process one of them has no core at times, and the
others wait. An LSTM of 64 steps with 256 cells takes 0.38 ms on two idle cores, and 13 ms beside a busy process; on one
thread it takes 0.68 ms in both cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .memory import Array
from .primitive_call import look_when_due
from .primitives import NativeKernel, spin_switch
from .single_thread import SingleThread


class ThreadsByLoad:
    """A bound kernel that takes turns between two. `shared`: for all threads. `single`: the same work for one."""

    def __init__(self, shared: NativeKernel, single: SingleThread) -> None:
        self._shared, self._single = shared, single
        self.nbytes: int = getattr(shared, "nbytes", 0) + getattr(single, "nbytes", 0)

    def __getattr__(self, name: str) -> Any:  # how, inplace, reads, extents
        return getattr(self._shared, name)

    def attach(self, inputs: tuple[Array, ...], outputs: tuple[Array, ...]) -> Callable[[], Any]:
        switch = spin_switch()
        run_shared = self._shared.attach(inputs, outputs)
        if switch is None:
            return run_shared
        run_single = self._single.attach(inputs, outputs)

        def call() -> None:
            look_when_due(switch)
            if switch.is_throttled:
                run_single()
            else:
                run_shared()

        return call

    def run(self, *arrays: Array) -> None:
        switch = spin_switch()
        if switch is not None:
            look_when_due(switch)
        kernel = self._single if switch is not None and switch.is_throttled else self._shared
        kernel.run(*arrays)
