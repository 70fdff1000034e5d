"""KernelPermits: a device may declare how many kernels it runs at once; others wait for a permit on their thread.

`attributes["kernels_at_once"]` is the number; without it there is no limit, and bound kernels are left as they are. A
permit is held by a kernel that runs, so it becomes free without the help of any waiting thread. A kernel that receives
its step may call functions, whose kernels need permits: it takes none itself.
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
permits_by_device: dict[int, KernelPermits] = {}  # by id of the device, as long as it lives


def limit_kernel(bound: Bound, kernel: KernelDef, device: Device) -> Bound:
    """Return the bound kernel of a device with a limit. The kernel takes a permit for each run."""
    if bound is None or kernel.step:
        return bound
    permits = _permits_of(device, device.attributes["kernels_at_once"])
    return _FunctionTakingPermits(bound, permits) if callable(bound) else _KernelTakingPermits(bound, permits)


class KernelPermits:
    """The permits of one device."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.forked()
        inherited.add(self)

    def forked(self) -> None:
        self._semaphore = BoundedSemaphore(self._count)  # kernels that ran in the parent hold no permit of the child

    def run_with_permit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        with self._semaphore:
            return function(*arguments)

    def function_taking_permits(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: self.run_with_permit(function, arguments)


class _KernelTakingPermits:
    """A bound kernel with `run` and `attach`, which take permits. Everything else is that of the kernel."""

    def __init__(self, bound: Any, permits: KernelPermits) -> None:
        self._bound, self._permits = bound, permits

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._bound, name)
        if name == "run":
            return self._permits.function_taking_permits(value)
        if name == "attach":
            return lambda inputs, outputs: self._permits.function_taking_permits(value(inputs, outputs))
        return value


class _FunctionTakingPermits(_KernelTakingPermits):
    """A kernel that is a run function."""

    def __call__(self, *arguments: Any) -> Any:
        return self._permits.run_with_permit(self._bound, arguments)


def _permits_of(device: Device, count: int) -> KernelPermits:
    key = id(device)
    with _lock:
        permits = permits_by_device.get(key)
        if permits is None:
            permits = permits_by_device[key] = KernelPermits(count)
            weakref.finalize(device, permits_by_device.pop, key, None).atexit = False
        return permits
