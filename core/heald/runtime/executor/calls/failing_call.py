"""FailingCall: a call of an op on a device that its inputs do not fit, which raises this error when it runs."""

from __future__ import annotations

from copy import copy
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ...contract.device import Device
from ...support.records import record
from .bound_call import BoundCall

if TYPE_CHECKING:
    from ....errors import HealdError
    from ...host.host import Host
    from ...values.tensor import TensorMetadata
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame


@record
class FailingCall(BoundCall):
    """`error`: the one of the link, which each run raises anew. A run that skips the call raises nothing."""

    device: Device
    kernel: None = field(default=None, init=False)
    error: HealdError

    @property
    def returns_results(self) -> bool:
        return True

    @property
    def obstacle_to_capture(self) -> str:
        return "its inputs do not fit"

    def make_frame_call(self, _: UnfinishedFrame) -> FrameCall | None:
        return self._fail

    def make_fresh_call(self, _: CallEnvironment) -> FreshCall:
        return self._fail

    def _fail(self, *_: Any) -> Any:
        raise copy(self.error).with_traceback(None)

    def typed_error(self, error: BaseException, _: Host, device_name: str) -> HealdError:
        assert isinstance(error, type(self.error))
        return error.at(node=self.call.node, op=self.call.op, device=device_name, location=self.call.location)

    def check_payload(self, value: Any, _: TensorMetadata) -> Any:
        return value
