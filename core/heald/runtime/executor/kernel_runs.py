"""KernelRuns: run functions of a program's kernels and makers of their outputs, for attached and for fresh calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..contract.device import STREAM
from ..contract.kernel import run_of
from ..program.host_program import HOST
from .array_contract import buffer_poisoner, poison_array, watched
from .bound_call import BoundCall
from .frame_calls import Maker, device_maker, returning, with_step, with_values
from .frame_layout import FrameLayout

if TYPE_CHECKING:
    from ..host.host import Host


class KernelRuns:
    """The run functions of the calls of `layout` on this host.

    `checks`: True when calls are checked against the array contract (`[debug] poison`).
    """

    def __init__(self, layout: FrameLayout, host: Host) -> None:
        self._layout = layout
        self._host = host
        self.checks = host.debug.poison
        self._is_synchronous = host.debug.synchronous

    def maker(self, register: int, registers: list[Any]) -> Maker:
        """Return a maker of the register's arrays, or of its device buffers.

        Device buffers belong to the step in the last of `registers`.
        """
        meta = self._layout.metas[register]
        if self._layout.memory[register] != HOST:
            device = self._layout.producer[register].device
            assert device is not None
            return device_maker(self._host.device_memory, device, meta.nbytes, lambda: registers[-1])
        return self._host.memory.maker(meta.dims, meta.dtype.numpy, "a result")

    def runner(self, bound: BoundCall, registers: list[Any]) -> Callable[..., Any]:
        """Return the call's run function.

        A kernel that returns its results becomes a function of the list of arguments.
        """
        assert bound.kernel is not None
        assert bound.bound is not None
        run = run_of(bound.bound)
        if self.checks and bound.device is not None and not bound.kernel.nonstrict:
            run = self.watched(run, bound, first=int(bound.kernel.step))
        run = self.awaited(run, bound)
        if bound.kernel.step:
            run = partial(with_step, registers, run)
        if bound.device is None:
            return partial(with_values, run) if bound.kernel.nonstrict else lambda ins: run(*ins)
        if bound.kernel.returns:
            metas = [self._layout.metas[r] for r in bound.call.results]
            return returning(run, metas, bound.call, bound.kernel, self._host.memory)
        return run

    def awaited(self, run: Callable[..., Any], bound: BoundCall) -> Callable[..., Any]:
        """Return the run function. With `[debug] synchronous` on a device with a queue it waits for the kernel."""
        device = bound.device
        if not self._is_synchronous or device is None or device.attributes.get("host_visible"):
            return run

        def call(*arguments: Any) -> Any:
            returned = run(*arguments)
            device.synchronize(device.record(STREAM))
            return returned

        return call

    def watched(self, run: Callable[..., Any], bound: BoundCall, first: int = 0) -> Callable[..., Any]:
        """Return the run function of a call, checked against the array contract each time."""
        device, kernel = bound.device, bound.kernel
        assert device is not None
        assert kernel is not None
        sizes = [] if bound.returns else [self._layout.metas[r].nbytes for r in bound.call.results]
        on_host = bound.memory == HOST
        poisons = [poison_array if on_host else buffer_poisoner(device, nbytes) for nbytes in sizes]
        return watched(run, poisons, kernel, first)
