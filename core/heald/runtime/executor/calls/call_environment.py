"""CallEnvironment: makers of outputs, and the checks of the test modes, for the calls of one executable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...contract.device import STREAM, Device
from ...contract.kernel import KernelDef
from ...host.device_memory import DeviceMemory
from ...program.host_program import HOST
from ...values.tensor import TensorMetadata
from ..array_contract import buffer_poisoner, checked_run_function, poison_array

if TYPE_CHECKING:
    from ...host.host import Host
    from ..step import Step
    from .frame_calls import Maker


class CallEnvironment:
    """The registers of an executable on this host, as far as its calls need them.

    `metas`: the metadata of each register.
    `device_of`: the device of each register outside host memory.
    `checks`: True when calls are checked against the array contract (`[debug] poison`).
    """

    def __init__(self, metas: Sequence[TensorMetadata], device_of: Mapping[int, Device], host: Host) -> None:
        self.metas = metas
        self._device_of = device_of
        self.host = host
        self.checks = host.debug.poison
        self._is_synchronous = host.debug.synchronous

    def maker(self, register: int, registers: list[Any]) -> Maker:
        """Return a maker of the register's arrays, or of its device buffers.

        Device buffers belong to the step in the last of `registers`.
        """
        meta = self.metas[register]
        device = self._device_of.get(register)
        if device is not None:
            return _buffer_maker(self.host.device_memory, device, meta.nbytes, lambda: registers[-1])
        return self.host.memory.maker(meta.dims, meta.dtype.numpy, "a result")

    def synchronous_run(self, run: Callable[..., Any], device: Device) -> Callable[..., Any]:
        """Return the run function. With `[debug] synchronous` on a device with a queue it waits for the kernel."""
        if not self._is_synchronous or device.attributes.get("host_visible"):
            return run

        def call(*arguments: Any) -> Any:
            returned = run(*arguments)
            device.synchronize(device.record(STREAM))
            return returned

        return call

    def run_with_checks(
        self, run: Callable[..., Any], outputs: Sequence[int], device: Device, memory: int, kernel: KernelDef,
        first: int = 0,
    ) -> Callable[..., Any]:
        """Return a run function that is checked against the array contract each time.

        `outputs`: the registers that the kernel writes, in this memory.
        `first`: the index of the first input among the arguments.
        """
        sizes = [self.metas[register].nbytes for register in outputs]
        poisons = [poison_array if memory == HOST else buffer_poisoner(device, nbytes) for nbytes in sizes]
        return checked_run_function(run, poisons, kernel, first)


def _buffer_maker(memory: DeviceMemory, device: Device, nbytes: int, owner: Callable[[], Step]) -> Maker:
    """Return a maker of device buffers that live as long as the running step. The maker raises ResourceExhausted."""
    def make() -> Any:
        buffer = memory.allocate(device, nbytes)
        owner().free_at_end(device.free, buffer)
        return buffer

    return make
