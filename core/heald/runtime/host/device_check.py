"""Device check: `synchronize` is tested behind a copy in, a kernel and a copy out, each by itself.

`heald devices --check` runs it. The probe of an opening waits once, behind all of its work: it cannot tell them apart.
"""

# The theory of the check
#
# A device that returns from `synchronize` too early is right most of the time: the stream orders its later work. The
# host alone sees the difference, in arrays that it shares with the device. The check uses the rights that a wait gives:
# - After a copy in, or a kernel behind it, the host may overwrite the array. The buffer keeps its former content.
# - After a copy out the array is complete.
# The arrays are large, so that a device that works beside the host is still at work when a wait ends too early.

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ...errors import HealdError, PluginError, Unavailable
from ..contract.device import STREAM, Device
from ..support.remedy import device_remedy
from .check_limit import NoAnswer, run_limited
from .device_fault import device_fault
from .probe import COPY_IN, COPY_OUT, KERNEL, note_work, run_probe_kernel
from .registries import Registries

LARGEST_ELEMENTS = 1 << 20  # of an array; less where the device has little memory
SMALLEST_ELEMENTS = 16
Array = np.ndarray[Any, np.dtype[np.float32]]


def check_device(device: Device, registries: Registries, name: str, plugin: str) -> None:
    """Check the waits of an open device behind each kind of work.

    Raises PluginError for a wait that ends too early, and the typed error of a wait that raises. The texts name the
    work. A device on host memory has no such waits. Raises NoAnswer for a wait without an end, within `limited_check`.
    """
    if device.attributes.get("host_visible"):
        return
    for work, check in WAIT_CHECKS.items():
        note_work(work)
        try:
            is_right = run_limited(name, plugin, partial(_run_check, check, device, registries))
        except NoAnswer:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin's own exception becomes a typed error
            raise behind(work, device_fault(error, device, name, plugin))  # noqa: B904 - the cause is set there
        if not is_right:
            raise PluginError(f"synchronize of device {name} (plugin {plugin}) returned before {work} had ended",
                              device=name, plugin=plugin, hint=device_remedy(plugin))


def _run_check(check: Callable[[Waits], bool], device: Device, registries: Registries) -> bool:
    waits = Waits(device, registries)
    try:
        return check(waits)
    finally:
        waits.free()


def behind(work: str, error: HealdError) -> HealdError:
    """The error of a wait, with the work that it was for."""
    error.message = f"{error.message} (behind {work})"
    return error


class Waits:
    """Three buffers of a device, of at most `largest` elements, as it has memory; and an array with small numbers."""

    def __init__(self, device: Device, registries: Registries, largest: int = LARGEST_ELEMENTS) -> None:
        self.device, self.registries = device, registries
        self.buffers: list[Any] = []
        count = largest
        while not self._allocate(4 * count):
            count //= 4
            if count < SMALLEST_ELEMENTS:
                raise Unavailable(f"{device.type} has no memory for three buffers of {4 * count} bytes")
        self.x: Array = np.arange(count, dtype=np.float32) % 1024 + 1

    def _allocate(self, nbytes: int) -> bool:
        while len(self.buffers) < 3:
            buffer = self.device.allocate(nbytes)
            if buffer is None:
                self.free()
                return False
            self.buffers.append(buffer)
        return True

    def free(self) -> None:
        while self.buffers:
            self.device.free(self.buffers.pop())

    def wait(self) -> None:
        self.device.synchronize(self.device.record(STREAM))

    def content(self, buffer: Any) -> Array:
        """The elements of a buffer, NaN where a copy out has not come."""
        host = np.full_like(self.x, np.nan)
        self.device.copy_out(buffer, host, STREAM)
        self.wait()
        return host


def is_complete_behind_copy_out(waits: Waits) -> bool:
    """True if an array is complete when the wait behind its copy ends."""
    waits.device.copy_in(waits.x, waits.buffers[0], STREAM)
    return bool(np.array_equal(waits.content(waits.buffers[0]), waits.x))


def is_complete_behind_copy_in(waits: Waits) -> bool:
    """True if a buffer keeps the content that its array had until the wait."""
    host = waits.x.copy()
    waits.device.copy_in(host, waits.buffers[0], STREAM)
    waits.wait()
    host[:] = -1
    return bool(np.array_equal(waits.content(waits.buffers[0]), waits.x))


def is_complete_behind_kernel(waits: Waits) -> bool:
    """True if a kernel has seen the content that the arrays had until the wait; also without a kernel to run."""
    hosts = [waits.x.copy(), waits.x.copy()]
    *inputs, output = waits.buffers
    for host, buffer in zip(hosts, inputs, strict=True):
        waits.device.copy_in(host, buffer, STREAM)
    if not run_probe_kernel(waits.device, waits.registries, inputs, output, waits.x.shape):
        return True
    waits.wait()
    for host in hosts:
        host[:] = -1
    return bool(np.array_equal(waits.content(output), 2 * waits.x))


WAIT_CHECKS: Mapping[str, Callable[[Waits], bool]] = MappingProxyType({
    COPY_OUT: is_complete_behind_copy_out,  # the first: both others read what a copy out brings
    COPY_IN: is_complete_behind_copy_in,
    KERNEL: is_complete_behind_kernel,
})
