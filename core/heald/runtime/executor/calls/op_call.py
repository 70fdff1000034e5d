"""OpCall: a call of an op's kernel on a device, the base of three forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...contract.device import Device
from ...contract.kernel import KernelDef
from ...support.fault_place import method_of
from ...support.kernel_errors import kernel_fault
from ...support.records import record
from ..host_array import check_payload
from .bound_call import BoundCall

if TYPE_CHECKING:
    from ....errors import HealdError
    from ...host.host import Host
    from ...values.tensor import TensorMetadata


@record
class OpCall(BoundCall):
    device: Device
    kernel: KernelDef

    @property
    def returns_results(self) -> bool:
        return self.kernel.returns

    def typed_error(self, error: BaseException, host: Host, device_name: str) -> HealdError:
        """An exception of a method of the device is the device's fault, every other one the kernel's."""
        call = self.call
        if method_of(error, self.device) is not None:
            return host.fault(self.device, error).at(node=call.node, op=call.op, location=call.location)
        typed = kernel_fault(error, f"kernel {call.code}", self.kernel)
        typed.at(node=call.node, op=call.op, device=device_name, location=call.location)
        host.note_failure(self.device, typed)
        return typed

    def check_payload(self, value: Any, meta: TensorMetadata) -> Any:
        return check_payload(value, meta, self.call.op, self.kernel.pack)
