"""Transfer: a call without a kernel, which a device does itself, the base of five forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ...contract.device import STREAM, Device, Stream
from ...support.records import record
from ..host_array import check_payload
from .bound_call import BoundCall

if TYPE_CHECKING:
    from ....errors import HealdError
    from ...host.host import Host
    from ...values.tensor import TensorMetadata


@record
class Transfer(BoundCall):
    device: Device
    kernel: None = field(default=None, init=False)

    @property
    def same_size_pairs(self) -> tuple[tuple[int, int], ...]:
        return ((0, 0),)

    @property
    def reads_after_return(self) -> bool:
        return False

    def typed_error(self, error: BaseException, host: Host, _: str) -> HealdError:
        return host.fault(self.device, error).at(node=self.call.node, op=self.call.op, location=self.call.location)

    def check_payload(self, value: Any, meta: TensorMetadata) -> Any:
        return check_payload(value, meta, self.call.code)


def run_on_stream(copy: Callable[..., None], source: Any, result: Any, stream: Stream = STREAM) -> None:
    copy(source, result, stream)
