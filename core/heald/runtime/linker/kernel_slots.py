"""Kernel slots: a device may declare how many kernels it runs at once; further ones wait for a slot on their thread.

`attributes["kernels_at_once"]` is the number; without it there is no limit, and bound kernels are left as they are. A
slot is held by a kernel that runs, so it becomes free without the help of any waiting thread. A kernel that receives
its step may call functions, whose kernels need slots: it takes none itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any

from ..support.fork_safety import inherited

if TYPE_CHECKING:
    from ..contract.device import Device
    from ..contract.kernel import Bound, KernelDef

_lock = Lock()
slots_by_device: dict[int, KernelSlots] = {}  # by id of the device, as long as it lives


def limit_kernel(bound: Bound, kernel: KernelDef, device: Device) -> Bound:
    """Return the bound kernel of a device with a limit. The kernel takes a slot for each run."""
    if bound is None or kernel.step:
        return bound
    slots = _slots_of(device, device.attributes["kernels_at_once"])
    return _FunctionTakingSlots(bound, slots) if callable(bound) else _KernelTakingSlots(bound, slots)


class KernelSlots:
    """The slots of one device."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.forked()
        inherited.add(self)

    def forked(self) -> None:
        self._semaphore = BoundedSemaphore(self._count)  # kernels that ran in the parent hold no slot of the child

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with self._semaphore:
            return function(*arguments)

    def function_taking_slots(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: self.run(function, arguments)


class _KernelTakingSlots:
    """A bound kernel with `run` and `attach`, which take slots. Everything else is that of the kernel."""

    def __init__(self, bound: Any, slots: KernelSlots) -> None:
        self._bound, self._slots = bound, slots

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._bound, name)
        if name == "run":
            return self._slots.function_taking_slots(value)
        if name == "attach":
            return lambda inputs, outputs: self._slots.function_taking_slots(value(inputs, outputs))
        return value


class _FunctionTakingSlots(_KernelTakingSlots):
    """A kernel that is a run function."""

    def __call__(self, *arguments: Any) -> Any:
        return self._slots.run(self._bound, arguments)


def _slots_of(device: Device, count: int) -> KernelSlots:
    key = id(device)
    with _lock:
        slots = slots_by_device.get(key)
        if slots is None:
            slots = slots_by_device[key] = KernelSlots(count)
            weakref.finalize(device, slots_by_device.pop, key, None).atexit = False
        return slots
