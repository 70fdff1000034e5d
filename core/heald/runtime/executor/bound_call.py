"""BoundCall: a call of a program with its kernel, and the properties that the executor derives from both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..contract.device import Device
from ..contract.kernel import Bound, KernelDef
from ..contract.structural import CONTROL_FLOW, DEAD_VALUES, FRAME, RECV_CODE
from ..program.host_program import Call
from ..support.plugin_guard import plugin_guard

_PASSING = frozenset({*DEAD_VALUES.values(), "heald.gate", RECV_CODE})
_GIVING_DEAD = frozenset({*DEAD_VALUES.values(), CONTROL_FLOW[FRAME].code})


class BoundCall(NamedTuple):
    """A call of a linked program: bound, lazy, or a transfer.

    `lazy`: binds when the shapes are known in the run. A transfer has no kernel.
    `alias`: result index to the index of the argument whose buffer the result shows.
    `memory`: the stream whose memory holds the results.
    `device`: None for a host kernel, whose results may be any object.
    `retained`: indices of the arguments that the kernel reads after it has returned.
    """

    call: Call
    device: Device | None
    memory: int
    kernel: KernelDef | None = None
    bound: Bound = None
    lazy: Callable[[Any, list[Any]], list[Any]] | None = None  # takes the step and the arguments
    alias: Mapping[int, int] = MappingProxyType({})
    retained: frozenset[int] = frozenset()
    stateful: bool = False
    wraps: bool = False  # a copy of a feed to a device that may instead read the feed in host memory
    settled: bool = False  # a call of functions that never returns results that come later
    source: Device | None = None  # of a copy between two devices: the one whose memory has the argument
    awaited: bool = False  # a copy to the host with consumers in the same step, so it is awaited by itself

    @property
    def is_view(self) -> bool:
        """True when nothing runs: every result is an argument under another type or shape."""
        return self.kernel is not None and self.lazy is None and self.bound is None

    @property
    def read(self) -> tuple[int, ...]:
        """The registers of the arguments whose elements the call reads."""
        indices = getattr(self.bound, "reads", None) if self.sees_host else None
        return self.call.args if indices is None else tuple(a for i, a in enumerate(self.call.args) if i in indices)

    @property
    def how(self) -> str:
        """The kernel's own description of its algorithm, empty by default.

        Raises PluginError when it cannot be read.
        """
        with plugin_guard(f"'how' of the kernel {self.call.code}"):
            return str(getattr(self.bound, "how", ""))

    @property
    def fills_cores(self) -> bool:
        """True when the kernel uses all cores itself, so that running other calls beside it gains nothing."""
        return bool(getattr(self.bound, "fills_cores", False))

    @property
    def plannable(self) -> bool:
        """True when the memory plan may give its results buffers of the frame."""
        return self.lazy is None and not self.is_view and not self.returns

    @property
    def returns(self) -> bool:
        """True when the run function returns its results instead of writing them."""
        return self.device is None or (self.kernel is not None and self.kernel.returns)

    @property
    def pends(self) -> bool:
        """True when the call is declared to return results that come later."""
        return self.awaited or (self.kernel is not None and (self.kernel.asynchronous or self.kernel.nonstrict))

    @property
    def given(self) -> tuple[int, ...]:
        """The registers that its returned values fill: its results, or the chain that completes when it is done."""
        return self.call.gives if self.pends else self.call.results

    @property
    def may_pend(self) -> bool:
        """True when the call may return results that come later, declared or not."""
        return self.pends or (self.device is None and not self.settled)

    @property
    def lends(self) -> bool:
        """True when its arguments may be read after it has returned, outside the order of the device's stream."""
        return (self.may_pend or self.device is None) and not self.awaited

    @property
    def passes_on(self) -> bool:
        """True when its results may be its arguments, tensors that a Send keeps, or constants of functions that it
        calls."""
        return self.device is None and (bool(self.call.functions) or self.call.code in _PASSING)

    @property
    def may_give_dead(self) -> bool:
        """True when a result may be dead although every argument is alive."""
        return self.device is None and self.call.code in _GIVING_DEAD

    @property
    def sees_host(self) -> bool:
        """True when the call works on host memory, and is done when it returns."""
        return self.device is None or bool(self.device.attributes.get("host_visible"))
