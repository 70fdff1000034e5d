"""ScratchKernel: a bound kernel that asked for scratch buffers (`Bind.scratch`), complete in itself.

Each run allocates the buffers and frees them. A link takes the kernel out, and lets the memory plan give its scratch:
registers without consumers, written by the call alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...errors import PluginError, ResourceExhausted
from ..contract.device import Device
from ..contract.device_limits import DeviceLimits
from ..contract.kernel import Attachable, Bound, KernelDef, run_of
from ..executor.calls.bound_call import BoundCall
from ..executor.calls.kernel_call import KernelCall
from ..support.remedy import kernel_remedy
from ..values.dtypes import uint8
from ..values.tensor import TensorMetadata


class ScratchKernel:
    """`kernel`: the bound kernel, which takes scratch behind its outputs; `sizes`: the bytes of each."""

    def __init__(self, kernel: Callable[..., Any] | Attachable, sizes: Sequence[int], device: Device) -> None:
        self.kernel = kernel
        self.sizes = tuple(sizes)
        self._device = device

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def run(self, *inputs_then_outputs: Any) -> Any:
        scratch: list[Any] = []
        try:
            for nbytes in self.sizes:
                scratch.append(self._allocate(nbytes))
            return run_of(self.kernel)(*inputs_then_outputs, *scratch)
        finally:
            for buffer in scratch:
                self._device.free(buffer)

    def attach(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Callable[[], Any]:
        return partial(self.run, *inputs, *outputs)

    def _allocate(self, nbytes: int) -> Any:
        buffer = self._device.allocate(DeviceLimits.of(self._device.attributes).allocation(nbytes))
        if buffer is None:
            raise ResourceExhausted(f"no memory for {nbytes} bytes of scratch")
        return buffer[: nbytes] if self._device.attributes.get("host_visible") else buffer


def with_scratch(bound: Bound, sizes: Sequence[int], kernel: KernelDef, device: Device) -> Bound:
    """Return a bound kernel that gets scratch of these sizes. Raises PluginError for a kernel that can have none."""
    if bound is None or kernel.returns:
        what = "is an alias" if bound is None else "returns its outputs"
        raise PluginError(f"bind of {kernel.pack}'s kernel for {kernel.op} asked for scratch, and the kernel {what}",
                          hint=kernel_remedy(kernel.pack, kernel.op, is_fusion=kernel.is_fusion))
    return ScratchKernel(bound, sizes, device)


def add_scratch_registers(bound_calls: Sequence[BoundCall], metas: list[TensorMetadata]) -> list[BoundCall]:
    """Return the calls with a new register for each of their scratch buffers. `metas` receives its metadata."""
    return [_with_registers(bound, bound.bound, metas)
            if isinstance(bound, KernelCall) and isinstance(bound.bound, ScratchKernel) else bound
            for bound in bound_calls]


def _with_registers(bound: KernelCall, scratch: ScratchKernel, metas: list[TensorMetadata]) -> KernelCall:
    registers = tuple(range(len(metas), len(metas) + len(scratch.sizes)))
    metas += [TensorMetadata(uint8, (nbytes,)) for nbytes in scratch.sizes]
    call = bound.call._replace(results=(*bound.call.results, *registers))
    return replace(bound, call=call, bound=scratch.kernel)
