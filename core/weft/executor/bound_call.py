"""BoundCall: a call of a program that has met its kernel, and what that means for those who run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..contract.device import Device
from ..contract.kernel import Bound, KernelDef
from ..program.host_program import Call
from ..support.plugin_guard import plugin_guard


class BoundCall(NamedTuple):
    """A call of a linked program: bound, or `lazy` (bound when its shapes are seen), or a transfer (no kernel).

    `alias`: which results show the buffer of which argument. `memory`: the stream whose memory the results live in.
    `device` None: a host kernel, whose results may be anything.
    `retained`: the arguments that its kernel reads after it has returned.
    """

    call: Call
    device: Device | None
    memory: int
    kernel: KernelDef | None = None
    bound: Bound = None
    lazy: Callable[[Any, list[Any]], list[Any]] | None = None  # of the step and the arguments
    alias: Mapping[int, int] = MappingProxyType({})
    retained: frozenset[int] = frozenset()
    stateful: bool = False
    wraps: bool = False  # a copy of a feed to a device, which may read it where it is instead
    awaited: bool = False  # a copy to the host that is waited for by itself: others need it while the step goes on

    @property
    def is_view(self) -> bool:
        """True when there is nothing to run: every result is an argument under another type or shape."""
        return self.kernel is not None and self.lazy is None and self.bound is None

    @property
    def read(self) -> tuple[int, ...]:
        """The arguments that its calls look at."""
        places = getattr(self.bound, "reads", None) if self.sees_host else None
        return self.call.args if places is None else tuple(a for i, a in enumerate(self.call.args) if i in places)

    @property
    def how(self) -> str:
        """What the kernel says of the way in which it does the work. Raises PluginError where it fails to."""
        with plugin_guard(f"'how' of the kernel {self.call.code}"):
            return str(getattr(self.bound, "how", ""))

    @property
    def fills_cores(self) -> bool:
        """True when nothing is gained by running other calls beside it."""
        return bool(getattr(self.bound, "fills_cores", False))

    @property
    def plannable(self) -> bool:
        """True when its results may be buffers of the frame."""
        return self.lazy is None and not self.is_view and not self.returns

    @property
    def returns(self) -> bool:
        """True when the run function returns its results instead of writing them."""
        return self.device is None or (self.kernel is not None and self.kernel.returns)

    @property
    def pends(self) -> bool:
        """True when it is known to give results that come later."""
        return self.awaited or (self.kernel is not None and (self.kernel.asynchronous or self.kernel.nonstrict))

    @property
    def given(self) -> tuple[int, ...]:
        """The registers that are filled with what it returns: those of its results, or the chain that tells when it is
        done."""
        return self.call.gives if self.pends else self.call.results

    @property
    def may_pend(self) -> bool:
        """True when it may give results that come later, declared or not."""
        return self.pends or self.device is None

    @property
    def lends(self) -> bool:
        """True when its arguments may be read after it has returned, and in no order of the device's."""
        return self.may_pend and not self.awaited

    @property
    def sees_host(self) -> bool:
        """True when it works on host memory, and is done when it returns."""
        return self.device is None or bool(self.device.attributes.get("host_visible"))
