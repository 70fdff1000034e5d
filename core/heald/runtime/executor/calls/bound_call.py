"""BoundCall: a call of a program with its kernel, and the properties that the executor derives from both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract.device import STREAM, Device, Stream
from ...contract.kernel import KernelDef
from ...host.bound_call_cache import bytes_of_call
from ...program.host_program import Call
from ...support.records import record

if TYPE_CHECKING:
    from ....errors import HealdError
    from ...host.host import Host
    from ...values.tensor import TensorMetadata
    from .call_environment import CallEnvironment
    from .frame_calls import FrameCall, FreshCall
    from .unfinished_frame import UnfinishedFrame

_NO_ALIAS: Mapping[int, int] = MappingProxyType({})


@record
class BoundCall(ABC):
    """A call of a linked program. The subclasses are the forms of calls.

    `device`: None for a host kernel, whose results may be any object.
    `memory`: the stream whose memory holds the results.
    `kernel`: None for a transfer.
    `alias`: result index to the index of the argument whose buffer the result shows.
    `retained`: indices of the arguments that the kernel reads after it has returned.
    """

    call: Call
    device: Device | None
    memory: int
    kernel: KernelDef | None
    alias: Mapping[int, int] = field(default_factory=lambda: _NO_ALIAS, kw_only=True)
    retained: frozenset[int] = field(default=frozenset(), kw_only=True)
    stateful: bool = field(default=False, kw_only=True)

    is_view: ClassVar[bool] = False
    """True when nothing runs: every result is an argument under another type or shape."""
    is_host_kernel: ClassVar[bool] = False
    """True for a host kernel, which may hand over to a DataflowRun."""
    adopts_feed: ClassVar[bool] = False
    """True when the result is a device's buffer over a feed, which is freed at the end of each run."""
    joins_devices: ClassVar[bool] = False
    """True when the call uses the memory of two devices, whose streams only the devices can order."""

    @abstractmethod
    def make_frame_call(self, frame: UnfinishedFrame) -> FrameCall | None:
        """Return the FrameCall over the registers of a frame, or None when nothing is left to run."""

    @abstractmethod
    def make_fresh_call(self, environment: CallEnvironment) -> FreshCall:
        """Return the call as a function from arguments to results, which writes no memory of the plan."""

    @abstractmethod
    def typed_error(self, error: BaseException, host: Host, device_name: str) -> HealdError:
        """Return the typed error for an exception of the call, with its node, op and location."""

    @abstractmethod
    def check_payload(self, value: Any, meta: TensorMetadata) -> Any:
        """Return the payload of a result that came later, in the form that a register holds."""

    @property
    def kernel_bytes(self) -> int:
        """The approximate bytes of the bound kernel."""
        return bytes_of_call(None)

    @property
    def registers_read(self) -> tuple[int, ...]:
        """The registers of the arguments whose elements the call reads."""
        return self.call.args

    @property
    def shows_parts(self) -> bool:
        """True for a view whose results are parts of arguments, and may begin behind their first element."""
        return False

    @property
    def same_size_pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a result and the argument that it shows, or is a copy of, by their indices."""
        return ()

    @property
    def inplace(self) -> Mapping[int, int]:
        """Result index to the index of the argument that the kernel may overwrite with it."""
        return {}

    @property
    def how(self) -> str:
        """The kernel's own description of its algorithm, empty by default."""
        return ""

    @property
    def prefers_fixed_arrays(self) -> bool:
        """True when an attached call saves more time than a copy of a small operand takes."""
        return False

    @property
    def fills_cores(self) -> bool:
        """True when the kernel uses all cores itself, so that running other calls beside it gains nothing."""
        return False

    @property
    def obstacle_to_capture(self) -> str:
        """The reason for which a device cannot capture the call, empty when the call itself has none."""
        return "it has no kernel"

    @property
    def returns_results(self) -> bool:
        """True when the run function returns its results instead of writing them."""
        return False

    @property
    def plannable(self) -> bool:
        """True when the memory plan may give its results buffers of the frame."""
        return not self.returns_results

    @property
    def device_stream(self) -> Stream:
        """The stream of the device on which a run of plain calls enqueues it."""
        return STREAM

    @property
    def is_nonstrict(self) -> bool:
        """True when the call runs as soon as one of its arguments is available."""
        return self.kernel is not None and self.kernel.nonstrict

    @cached_property
    def pends(self) -> bool:
        """True when the call is declared to return results that come later."""
        return self.kernel is not None and (self.kernel.asynchronous or self.kernel.nonstrict)

    @cached_property
    def may_pend(self) -> bool:
        """True when the call may return results that come later, declared or not."""
        return self.pends

    @property
    def needs_own_step(self) -> bool:
        """True when runs with this call each need a step of their own."""
        return self.may_pend or (self.kernel is not None and self.kernel.step)

    @property
    def returned_registers(self) -> tuple[int, ...]:
        """The registers that its returned values fill: its results, or the chain that completes when it is done."""
        return self.call.gives if self.pends else self.call.results

    @property
    def reads_after_return(self) -> bool:
        """True when its arguments may be read after it has returned, outside the order of the device's stream."""
        return self.may_pend

    @property
    def passes_on(self) -> bool:
        """True when its results may be its arguments, tensors that a Send keeps, or constants of functions that it
        calls."""
        return False

    @property
    def may_give_dead(self) -> bool:
        """True when a result may be dead although every argument is alive."""
        return False

    @property
    def sees_host(self) -> bool:
        """True when the call works on host memory, and is done when it returns."""
        return self.device is None or bool(self.device.attributes.get("host_visible"))
